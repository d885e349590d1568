#include "tests/harness/expected_output.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/harness/folders.h"

namespace tandem::testing {
namespace {

using Lines = std::vector<std::string>;

Lines lines_in(const std::string& text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool is_marker(std::string_view line) {
  for (const std::string_view marker : {"== ", "-- ", "> ", ". ", "## "}) {
    if (line.starts_with(marker)) return true;
  }
  return line == "." || line == ">";
}

bool is_partial(const Lines& output) {
  return !output.empty() && std::all_of(output.begin(), output.end(), [](const auto& line) {
    return line.starts_with("has: ") || line.starts_with("lacks: ");
  });
}

/// A line of an output as the file has it: no marker, and without control characters.
std::string written(const std::string& line) {
  std::string text = is_marker(line) || line.starts_with('\\') ? "\\" : "";
  for (const char c : line) {
    constexpr const char* digits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 32 && c != '\t') || byte == 127)
      text += std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">";
    else
      text += c;
  }
  return text;
}

/// The lines of an output as the file has them, without empty ones at its end.
Lines written_lines(const std::string& output) {
  Lines lines = lines_in(output);
  for (std::string& line : lines) line = written(line);
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

/// Reads the cases of one file.
class CaseReader {
 public:
  explicit CaseReader(const std::string& path) : path_(path), lines_(lines_in(content_of(path))) {}

  std::vector<ExpectedCase> cases() {
    while (at_ < lines_.size()) {
      const std::string& line = lines_[at_++];
      if (line.starts_with("== "))
        cases_.push_back({.path = path_, .name = line.substr(3), .texts = shared_});
      else if (line.starts_with("-- "))
        take_text(line.substr(3));
      else if (line.starts_with("> ") || line == ">")
        take_exchange(line.size() > 2 ? line.substr(2) : "");
      else if (!line.empty() && !line.starts_with("## "))
        throw std::runtime_error(path_ + ":" + std::to_string(at_) + ": not in a text or output");
    }
    return std::move(cases_);
  }

 private:
  /// The lines up to the next marker, without comments and empty lines at the end.
  Lines take_lines(std::size_t& end) {
    Lines taken;
    end = at_;
    for (; at_ < lines_.size() && (!is_marker(lines_[at_]) || lines_[at_].starts_with("## "));
         ++at_) {
      if (lines_[at_].starts_with("## ")) continue;
      taken.push_back(lines_[at_]);
      if (!lines_[at_].empty()) end = at_ + 1;
    }
    while (!taken.empty() && taken.back().empty()) taken.pop_back();
    return taken;
  }
  void take_text(std::string name) {
    const bool is_escaped = name.ends_with(" escaped");
    if (is_escaped) name.resize(name.size() - 8);
    std::size_t end = 0;
    const std::string text = joined(take_lines(end));
    (cases_.empty() ? shared_ : cases_.back().texts)[name] = is_escaped ? unescaped(text) : text;
  }
  void take_exchange(std::string input) {
    for (; at_ < lines_.size() && (lines_[at_].starts_with(". ") || lines_[at_] == "."); ++at_)
      input += "\n" + (lines_[at_].size() > 2 ? lines_[at_].substr(2) : "");
    Exchange exchange{.input = input, .output = {}, .line = at_};
    exchange.output = take_lines(exchange.end);
    cases_.back().exchanges.push_back(exchange);
  }

  std::string path_;
  Lines lines_;
  std::size_t at_ = 0;
  std::map<std::string, std::string> shared_;
  std::vector<ExpectedCase> cases_;
};

void rewrite(const ExpectedCase& of, const std::vector<Lines>& outputs) {
  const std::vector<ExpectedCase> cases = CaseReader(of.path).cases();
  const auto now = std::find_if(cases.begin(), cases.end(),
                                [&](const ExpectedCase& other) { return other.name == of.name; });
  Lines lines = lines_in(content_of(of.path));
  for (std::size_t i = outputs.size(); i-- > 0;) {
    const Exchange& exchange = now->exchanges[i];
    if (is_partial(exchange.output)) continue;
    const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(exchange.line);
    const auto end = lines.begin() + static_cast<std::ptrdiff_t>(exchange.end);
    lines.insert(lines.erase(begin, end), outputs[i].begin(), outputs[i].end());
  }
  std::ofstream(of.path, std::ios::binary) << joined(lines);
}

void compare(const Exchange& exchange, const Lines& output) {
  const std::string all = joined(output);
  if (!is_partial(exchange.output)) {
    EXPECT_EQ(all, joined(exchange.output));
    return;
  }
  for (const std::string& line : exchange.output) {
    const bool is_there = line.starts_with("has: ");
    const std::string words = line.substr(line.find(' ') + 1);
    EXPECT_EQ(all.find(words) != std::string::npos, is_there) << line << "\nin\n" << all;
  }
}

}  // namespace

std::string ExpectedCase::text(const std::string& of) const {
  const auto found = texts.find(of);
  return found == texts.end() ? "" : found->second;
}

void ExpectedCase::check(
    const std::function<std::string(const std::string& input)>& output_of) const {
  const char* const variable = std::getenv("UPDATE_EXPECTED");
  const bool updates = variable != nullptr && std::string_view(variable) == "1";
  EXPECT_FALSE(exchanges.empty()) << path << ": there is no case of this name with an input";
  std::vector<Lines> outputs;
  for (const Exchange& exchange : exchanges) {
    outputs.push_back(written_lines(output_of(exchange.input)));
    SCOPED_TRACE(path + ":" + std::to_string(exchange.line) + ": > " + exchange.input);
    if (!updates || is_partial(exchange.output)) compare(exchange, outputs.back());
  }
  if (updates && !exchanges.empty()) rewrite(*this, outputs);
}

void PrintTo(const ExpectedCase& expected, std::ostream* to) { *to << expected.name; }

std::vector<ExpectedCase> expected_cases(const std::string& name) {
  namespace fs = std::filesystem;
  const std::string path = source_folder() + "/tests/expected/" + name;
  std::vector<std::string> files;
  if (fs::is_directory(path)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
      if (entry.path().extension() == ".txt") files.push_back(entry.path().string());
    }
  } else if (fs::exists(path + ".txt")) {
    files.push_back(path + ".txt");
  }
  std::sort(files.begin(), files.end());
  std::vector<ExpectedCase> all;
  for (const std::string& file : files) {
    std::vector<ExpectedCase> some = CaseReader(file).cases();
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  if (all.empty()) all.push_back({.path = path, .name = "missing"});
  return all;
}

std::string name_of_case(const ::testing::TestParamInfo<ExpectedCase>& info) {
  std::string name = std::filesystem::path(info.param.path).stem().string() + "_";
  bool is_first = true;
  for (const char c : info.param.name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) name += is_first ? static_cast<char>(std::toupper(byte)) : c;
    is_first = std::isalnum(byte) == 0;
  }
  return name;
}

}  // namespace tandem::testing
