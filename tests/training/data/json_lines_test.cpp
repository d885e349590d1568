// Cells of JSON objects, and text in columns as tokens that Hugging Face's tokenizers give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "engine/data/data_source.h"
#include "engine/data/json_row.h"
#include "engine/formats/files.h"
#include "tests/training/data/data_config_text.h"
#include "tests/training/error_text.h"
#include "tests/training/formats/tokenizer_cases.h"

namespace tandem {
namespace {

using testing::data_config;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::tokenizer_file;
using Json = nlohmann::json;

std::vector<double> all_numbers(const DataSource& source, const std::string& name) {
  const int field = source.find_field(name);
  TensorType type = source.fields()[static_cast<std::size_t>(field)].sample;
  type.shape.insert(type.shape.begin(), source.samples());
  HostTensor result(type);
  std::vector<std::int64_t> all(static_cast<std::size_t>(source.samples()));
  std::iota(all.begin(), all.end(), 0);
  source.fill(field, all, nullptr, result.data());
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < type.elements(); ++i) numbers.push_back(result.number(i));
  return numbers;
}

TEST(JsonRow, CellsAreTheTextOfValues) {
  JsonRow row({"a", "b", "c"});
  const auto cells = [&](const char* line) {
    const JsonRow::Problem problem = row.take(line);
    if (!problem.message.empty()) return std::vector<std::string>{problem.message};
    return std::vector<std::string>(row.cells().begin(), row.cells().end());
  };
  EXPECT_THAT(cells(R"({"b": "x\"\u00e4\n,", "a": -1.50, "c": [1, 2.5e3, "z", true]})"),
              ElementsAre("-1.50", "x\"\xc3\xa4\n,", "1,2.5e3,z,1"));
  EXPECT_THAT(cells(R"({"d": {"a": [[{}]]}, "a": null, "e": [[1]], "b": [], "c": false})"),
              ElementsAre("", "", "0"));
  EXPECT_THAT(cells(R"({"a": 1, "b": 2})"), ElementsAre("the object has no key `c`"));
  EXPECT_THAT(cells(R"({"a": {}, "b": 2, "c": 3})"), ElementsAre(HasSubstr("an object")));
  EXPECT_THAT(cells(R"({"a": [[1]], "b": 2, "c": 3})"), ElementsAre(HasSubstr("a list in a list")));
  EXPECT_THAT(cells(R"({"a": ["x,y"], "b": 2, "c": 3})"), ElementsAre(HasSubstr("comma")));
  EXPECT_THAT(cells(R"({"a": 1, "a": 2, "b": 2, "c": 3})"), ElementsAre(HasSubstr("twice")));
  EXPECT_THAT(cells("[1]"), ElementsAre(HasSubstr("not an object")));
  EXPECT_THAT(cells("3"), ElementsAre(HasSubstr("not an object")));
  EXPECT_THAT(cells("{\"a\": 1"), ElementsAre(HasSubstr("not JSON")));
  EXPECT_THAT(cells(R"({"d": 1e999, "a": 1, "b": 2, "c": 3})"), ElementsAre(HasSubstr("not JSON")));
  EXPECT_EQ(row.cells(), std::vector<std::string_view>(3));  // none from an earlier line
  const std::string deep(100'000, '[');
  EXPECT_THAT(cells(("{\"d\": " + deep).c_str()), ElementsAre(HasSubstr("nested too deeply")));
}

class TokenColumns : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (testing::lacks_text_libraries()) GTEST_SKIP() << "this build lacks PCRE2 or utf8proc";
  }
};

TEST_P(TokenColumns, HaveTheIdsMasksAndTypesOfHuggingFace) {
  const TemporaryFolder folder;
  const Json expected = tokenizer_file(GetParam());
  const auto lines = tokenizer_file("lines").get<std::vector<std::string>>();
  write_file(folder / "tokenizer.json", expected.at("tokenizer").dump());
  std::string text;
  std::vector<double> ids, types, mask;
  for (const Json& padded : expected.at("padded")) {
    text += Json{{"text", lines.at(padded[0])}}.dump() + "\n";
    for (std::size_t i = 0; i < 16; ++i) {
      ids.push_back(padded[1][i]);
      types.push_back(padded[2][i]);
      mask.push_back(padded[3][i]);
    }
  }
  write_file(folder / "a.jsonl", text);
  const DataSets sets = open_data(data_config(folder, R"toml(kind = "jsonl"
tokenizer = "tokenizer.json"
train = { files = "a.jsonl" }
[data.fields]
ids = { from = "text", as = [ "tokens(length=16)" ] }
types = { from = "text", as = [ "tokens(length=16, give='types')" ] }
mask = { from = "text", as = [ "tokens(length=16, give='mask')", "float32" ] }
)toml"));
  EXPECT_EQ(all_numbers(*sets.train, "ids"), ids);
  EXPECT_EQ(all_numbers(*sets.train, "types"), types);
  EXPECT_EQ(all_numbers(*sets.train, "mask"), mask);
  EXPECT_EQ(sets.train->fields()[0].sample, (TensorType{DType::int64, {16}}));
  EXPECT_EQ(sets.train->fields()[2].sample, (TensorType{DType::float32, {16}}));
  EXPECT_EQ(sets.vocabularies.at(0).file_name, "tokenizer.json");
}

INSTANTIATE_TEST_SUITE_P(All, TokenColumns, ::testing::Values("word_piece", "llama3"),
                         [](const auto& info) { return info.param; });

TEST(TokenTables, HaveTokensAndAreMadeAgainForAnotherTokenizer) {
  if (testing::lacks_text_libraries()) GTEST_SKIP() << "this build lacks PCRE2 or utf8proc";
  const TemporaryFolder folder;
  const Json expected = tokenizer_file("word_level");
  write_file(folder / "tokenizer.json", expected.at("tokenizer").dump());
  write_file(folder / "a.csv", "label,text\n1,\"Hello, the 33\"\n0,\n");
  const std::string data = R"toml(kind = "csv"
tokenizer = "tokenizer.json"
train = { files = "a.csv" }
[data.fields]
label = "label"
)toml";
  const auto open = [&](const std::string& text) { return open_data(data_config(folder, text)); };
  const DataSets sets = open(data + "ids = { from = 'text', as = ['tokens(length=6, pad=2)'] }\n");
  // hello=3, the comma is unknown, the=1, and each 3 by itself; nothing is all padding.
  EXPECT_THAT(all_numbers(*sets.train, "ids"), ElementsAre(3, 0, 1, 8, 8, 2, 2, 2, 2, 2, 2, 2));

  // Another tokenizer makes other arrays, though no other file has changed.
  Json other = expected.at("tokenizer");
  other["model"]["vocab"]["hello"] = 9;
  write_file(folder / "tokenizer.json", other.dump());
  const DataSets again = open(data + "ids = { from = 'text', as = ['tokens(length=6, pad=2)'] }\n");
  EXPECT_EQ(all_numbers(*again.train, "ids")[0], 9);

  EXPECT_THAT(error_of([&] { open(data + "ids = { from = 'text', as = ['tokens'] }\n"); }),
              HasSubstr("write tokens(length=128)"));
  EXPECT_THAT(error_of([&] {
                open(data + "ids = { from = 'text', as = ['log1p', 'tokens(length=4)'] }\n");
              }),
              HasSubstr("takes the whole text"));
  std::string without = data;
  without.erase(without.find("tokenizer ="),
                std::string("tokenizer = \"tokenizer.json\"\n").size());
  EXPECT_THAT(
      error_of([&] { open(without + "ids = { from = 'text', as = ['tokens(length=4)'] }\n"); }),
      HasSubstr("no tokenizer is named"));
}

}  // namespace
}  // namespace tandem
