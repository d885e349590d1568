// What commands report and write, as tests/expected/commands has it.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "api/init/facts.h"
#include "api/init/fields.h"
#include "engine/formats/files.h"
#include "tandem/init.h"
#include "tests/api/case_files.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/formats/tokenizer_cases.h"

namespace tandem::api {
namespace {

using testing::ExpectedCase;
using Words = std::vector<std::string>;

std::string field_of(const std::string& data, const Words& words) {
  const std::int64_t extent = std::stoll(words.at(2));
  const InputFacts input =
      words.at(1) == "float32"
          ? InputFacts{words.at(0), {DType::float32, {extent}}, {"batch", "n"}, 0}
          : InputFacts{words.at(0), {DType::int64, {}}, {"batch"}, extent};
  DataFacts facts = look_into_data(data);
  fit_data({input}, facts);
  const FieldGuesses guesses = guess_fields({input}, facts);
  const FieldGuess& guess = guesses.fields.at(0);
  std::string said = "as:";
  for (const std::string& function : guess.as) said += " " + function;
  if (!guess.why.empty()) said += "\nwhy: " + guess.why;
  if (!guess.todo.empty()) said += "\ntodo: " + guess.todo;
  return said;
}

/// The folder of one case, and the commands in it:
///   init MODEL [DATA [EVAL]]   the report, after files of an earlier one are removed
///   show FILE [TEXT]           its lines, or those with this text
///   write FILE                 the lines that follow become the file
///   remove FILE
///   replace TEXT => OTHER      at the beginning of a line of train.toml
///   train [FILE]               trains; the lines that follow are overrides
///   data check                 the report
///   field NAME TYPE EXTENT     what init makes of the folder "data" for an input of floats, or of
///                              int64 that look up a table of EXTENT rows
///   policy COMMAND WORD...     the report; the lines that follow: "policy=FILE", "model=FILE",
///                              "device=...", "place=..." or overrides
class CaseFolder {
 public:
  explicit CaseFolder(const ExpectedCase& of) { testing::write_files(of, folder_.path()); }

  std::string output_of(const std::string& input) const {
    std::istringstream stream(input);
    std::string command, first;
    std::getline(stream, first);
    Words lines;
    for (std::string line; std::getline(stream, line);)
      lines.push_back(testing::with_all(line, "FOLDER/", folder_.path() + "/"));
    std::istringstream words(first);
    words >> command >> std::ws;
    std::string rest;
    std::getline(words, rest);
    std::string said;
    try {
      said = done(command, rest, lines);
    } catch (const Error& error) {
      constexpr const char* kinds[] = {"", "runtime", "", "does not fit", "data", "diverged"};
      const std::string kind = kinds[static_cast<std::size_t>(error.kind())];
      said = error.what() + (kind.empty() ? "" : "\nerror of kind: " + kind);
    }
    return testing::with_all(said, folder_.path() + "/", "");
  }

 private:
  std::string done(const std::string& command, const std::string& rest, const Words& lines) const {
    std::istringstream stream(rest);
    Words words{std::istream_iterator<std::string>(stream), {}};
    if (command == "field") return field_of(folder_ / "data", words);
    words.resize(4);
    if (command == "init") return guessed(words);
    if (command == "show") return shown(words[0], rest.substr(words[0].size()));
    if (command == "write") return written(words[0], lines);
    if (command == "remove") return std::filesystem::remove(folder_ / rest) ? "" : "no such file";
    if (command == "replace") return replaced(rest);
    if (command == "train") return trained(words[0].empty() ? "train.toml" : words[0], lines);
    if (command == "data") {
      const DataReport checked = data_check(folder_ / "train.toml");
      return checked.report.text + (checked.bad ? "training refuses this" : "");
    }
    if (command == "policy") return policy(words, lines);
    return "no such command";
  }
  std::string guessed(const Words& words) const {
    for (const char* name : {"train.toml", "policy.toml"}) std::filesystem::remove(folder_ / name);
    InitOptions options{.data = {}, .eval = {}, .to = folder_.path()};
    if (!words[1].empty()) options.data = folder_ / words[1];
    if (!words[2].empty()) options.eval = folder_ / words[2];
    return init(folder_ / words[0], options).text;
  }
  std::string shown(const std::string& name, const std::string& rest) const {
    const std::string part = rest.empty() ? "" : rest.substr(1);
    std::string chosen;
    std::istringstream lines(read_file(folder_ / name));
    for (std::string line; std::getline(lines, line);) {
      if (line.find(part) != std::string::npos) chosen += line + "\n";
    }
    return chosen;
  }
  std::string written(const std::string& name, const Words& lines) const {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    testing::write_case_file(folder_ / name, text);
    return "";
  }
  std::string replaced(const std::string& argument) const {
    const std::size_t arrow = argument.find(" => ");
    const std::string before = argument.substr(0, arrow), after = argument.substr(arrow + 4);
    std::string text = read_file(folder_ / "train.toml");
    const std::size_t at = text.find("\n" + before);
    if (at == std::string::npos) return "there is no such line";
    write_file(folder_ / "train.toml", text.replace(at + 1, before.size(), after));
    return "";
  }
  std::string trained(const std::string& file, const Words& overrides) const {
    TrainOptions options;
    options.overrides = overrides;
    options.run_dir = folder_ / "run";
    std::filesystem::remove_all(options.run_dir);
    std::string said;
    options.on_message = [&](const std::string& line) { said += line + "\n"; };
    Trainer trainer(folder_ / file, options);
    const TrainResult result = trainer.run();
    EXPECT_TRUE(std::isfinite(result.loss));
    said += "trained " + std::to_string(result.steps) + " steps";
    for (const auto& [metric, value] : result.evaluation) said += " " + metric;
    return said;
  }
  std::string policy(const Words& words, const Words& lines) const {
    PolicyOptions options;
    options.config = folder_ / "train.toml";
    for (const std::string& line : lines) {
      const std::string value = line.substr(line.find('=') + 1);
      if (line.starts_with("policy="))
        options.policy = folder_ / value;
      else if (line.starts_with("model="))
        options.model = folder_ / value, options.config.clear();
      else if (line.starts_with("device="))
        options.devices.push_back(value);
      else if (line.starts_with("place="))
        options.place.push_back(value);
      else
        options.overrides.push_back(line);
    }
    if (words[0] == "names")
      return policy_names(options, words[1], words[2].empty() ? "graph" : words[2]).text;
    if (words[0] == "check") return policy_check(options).text;
    if (words[0] == "explain") return policy_explain(options, words[1], phase_of(words[2])).text;
    if (words[0] == "plan") return policy_plan(options).text;
    if (words[0] == "diff")
      return policy_diff(options, folder_ / words[1], folder_ / words[2]).text;
    return "no such command";
  }

  testing::TemporaryFolder folder_;
};

class CommandText : public ::testing::TestWithParam<ExpectedCase> {};

TEST_P(CommandText, IsAsExpected) {
  if (!GetParam().text("_needs_tokenizers").empty() && testing::lacks_text_libraries())
    GTEST_SKIP() << "this build lacks PCRE2 or utf8proc";
  const CaseFolder folder(GetParam());
  GetParam().check([&](const std::string& input) { return folder.output_of(input); });
}

INSTANTIATE_TEST_SUITE_P(, CommandText, ::testing::ValuesIn(testing::expected_cases("commands")),
                         testing::name_of_case);

}  // namespace
}  // namespace tandem::api
