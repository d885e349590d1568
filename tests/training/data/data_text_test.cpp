// What is read from data files, as tests/expected/data has it: values, messages, errors.
#include <gtest/gtest.h>

#include <cstdio>
#include <numeric>
#include <sstream>

#include "engine/config/keys/config_check.h"
#include "engine/data/data_source.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "tests/harness/expected_output.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/formats/tokenizer_cases.h"

namespace tandem {
namespace {

/// "x int64[2]: 1 2, 3 4": the samples of each field.
std::string samples_of(const DataSource& source) {
  std::string text;
  for (std::size_t field = 0; field < source.fields().size(); ++field) {
    const DataField& of = source.fields()[field];
    TensorType type = of.sample;
    type.shape.insert(type.shape.begin(), source.samples());
    HostTensor all(type);
    std::vector<std::int64_t> order(static_cast<std::size_t>(source.samples()));
    std::iota(order.begin(), order.end(), 0);
    source.fill(static_cast<int>(field), order, nullptr, all.data());
    text += of.name + " " + to_string(of.sample) + ":";
    const std::int64_t elements = of.sample.elements();
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      char number[40];
      const bool starts_sample = i > 0 && i % elements == 0;
      std::snprintf(number, sizeof number, "%s %.17g", starts_sample && elements > 1 ? "," : "",
                    all.number(i));
      text += number;
    }
    text += "\n";
  }
  return text;
}

/// The folder of one case: its files, and what opening them gives.
class OpenedData {
 public:
  explicit OpenedData(const testing::ExpectedCase& of) : data_(of.text("data")) {
    for (const auto& [name, text] : of.texts) {
      if (name != "data" && !name.starts_with('_'))
        write_file(folder_ / name, testing::repeated(text));
    }
  }

  /// Lines of `input` are overrides after "--set", files after "--write"; "--places" asks for the
  /// places of samples, "--vocabularies" for those files; else they follow the text `data`.
  std::string output_of(const std::string& input) {
    std::string text = "model = 'm.onnx'\nepochs = 1\n[optimizer]\nkind = 'sgd'\n[data]\n" + data_;
    std::vector<std::string> overrides;
    shows_places_ = shows_vocabularies_ = false;
    std::istringstream lines(input);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("--set "))
        overrides.push_back(line.substr(6));
      else if (line.starts_with("--write "))
        write(line.substr(8));
      else if (line == "--places")
        shows_places_ = true;
      else if (line == "--vocabularies")
        shows_vocabularies_ = true;
      else
        text += line + "\n";
    }
    std::string said;
    try {
      said = opened(text, overrides);
    } catch (const Error& error) {
      said = error.what();
    }
    return testing::with_all(said, folder_.path() + "/", "");
  }

 private:
  /// "NAME TEXT" with escapes in the text.
  void write(const std::string& argument) {
    const std::size_t space = argument.find(' ');
    write_file(folder_ / argument.substr(0, space),
               testing::unescaped(argument.substr(std::min(space + 1, argument.size()))));
  }
  std::string opened(const std::string& text, const std::vector<std::string>& overrides) const {
    const DataConfig config = *parse_run_config(text, folder_ / "train.toml", overrides).data;
    std::string said;
    OpenOptions options;
    options.on_message = [&](const std::string& line) {
      if (line.find("preparing") == std::string::npos) said += "said: " + line + "\n";
    };
    const auto open = [&] {
      said.clear();
      const DataSets sets = open_data(config, options);
      for (const std::string& warning : sets.warnings) said += "warning: " + warning + "\n";
      said += samples_of(*sets.train);
      if (sets.eval) said += "held out " + samples_of(*sets.eval);
      for (std::int64_t i = 0; shows_places_ && i < sets.train->samples(); ++i)
        said += "at " + sets.train->describe(0, i) + "\n";
      for (const SavedVocabulary& vocabulary : sets.vocabularies) {
        said += vocabulary.file_name + ": " + std::to_string(vocabulary.rows) + " rows\n";
        if (shows_vocabularies_)
          said += vocabulary.path.empty() ? vocabulary.text : read_file(vocabulary.path);
      }
      return said;
    };
    const std::string first = open();
    EXPECT_EQ(open(), first) << "from the arrays that are prepared";
    return first;
  }

  testing::TemporaryFolder folder_;
  std::string data_;
  bool shows_places_ = false, shows_vocabularies_ = false;
};

class DataText : public ::testing::TestWithParam<testing::ExpectedCase> {};

TEST_P(DataText, IsAsExpected) {
  if (!GetParam().text("_needs_tokenizers").empty() && testing::lacks_text_libraries())
    GTEST_SKIP() << "this build lacks PCRE2 or utf8proc";
  OpenedData data(GetParam());
  GetParam().check([&](const std::string& input) { return data.output_of(input); });
}

INSTANTIATE_TEST_SUITE_P(, DataText, ::testing::ValuesIn(testing::expected_cases("data")),
                         testing::name_of_case);

}  // namespace
}  // namespace tandem
