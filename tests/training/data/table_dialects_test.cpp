// Tables as tools write them: separators, an index, headers in another case, marks of numbers,
// spellings of missing values, booleans and dates; and the messages about cells that are none of
// these.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/training/data/cells/cell_number.h"
#include "engine/training/data/cells/dates.h"
#include "engine/training/data/data_source.h"
#include "engine/training/data/prepare_table.h"
#include "tests/harness/folders.h"
#include "tests/training/data/data_config_text.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using testing::data_config;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TemporaryFolder;

/// [data] with these keys, a file and the field x.
std::string toml(const std::string& keys, const std::string& field,
                 const std::string& kind = "csv") {
  return "kind = '" + kind + "'\n" + keys + "\ntrain = { files = ['t." + kind +
         "'], shuffle = 'none' }\nfields = { x = " + field + " }\n";
}

std::vector<double> numbers_of(const DataSource& source) {
  TensorType type = source.fields()[0].sample;
  type.shape.insert(type.shape.begin(), source.samples());
  HostTensor result(type);
  std::vector<std::int64_t> all(static_cast<std::size_t>(source.samples()));
  std::iota(all.begin(), all.end(), 0);
  source.fill(0, all, nullptr, result.data());
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < type.elements(); ++i) numbers.push_back(result.number(i));
  return numbers;
}

std::vector<double> read_table(const std::string& text, const std::string& field,
                               const std::string& keys = "",
                               std::vector<std::string>* said = nullptr) {
  const TemporaryFolder folder;
  write_file(folder / "t.csv", text);
  OpenOptions options;
  if (said != nullptr)
    options.on_message = [said](const std::string& line) { said->push_back(line); };
  return numbers_of(*open_data(data_config(folder, toml(keys, field)), options).train);
}

std::string refusal(const std::string& text, const std::string& field,
                    const std::string& keys = "") {
  return error_of([&] { read_table(text, field, keys); });
}

// If all rows of a column are wrong, each would give the same message.
TEST(TableDialects, EqualErrorsOfAColumnAreToldOnceWithTheirCount) {
  std::string text = "a;b\n";
  for (int i = 0; i < 9; ++i) text += "x" + std::to_string(i) + ";" + std::to_string(i) + "\n";
  const std::string error = refusal(text, "{ from = ['a', 'b'] }");
  EXPECT_THAT(error,
              AllOf(HasSubstr("t.csv:2:1"), HasSubstr("t.csv:4:1"),
                    HasSubstr("(and in 6 rows after it)"), ::testing::Not(HasSubstr("t.csv:5:1"))));
}

TEST(TableDialects, AnotherSeparatorIsFoundByAKeyOfTheKind) {
  EXPECT_THAT(refusal("a;b\n1;2\n", "'a'", "separator = ','"),
              HasSubstr("data.separator = \"auto\" finds it"));
}

TEST(TableDialects, Separators) {
  const std::vector<double> wanted{1.5, 2, -3, 4};
  EXPECT_EQ(read_table("a,b\n1.5,2\n-3,4\n", "{ from = ['a', 'b'] }"), wanted);
  EXPECT_EQ(read_table("a;b\n1.5;2\n-3;4\n", "{ from = ['a', 'b'] }"), wanted);
  EXPECT_EQ(read_table("a\tb\r\n1.5\t2\r\n-3\t4\r\n", "{ from = ['a', 'b'] }"), wanted);
  EXPECT_EQ(read_table("\xef\xbb\xbf\"a\"|\"b\"\n\"1.5\"|2\n-3|4\n", "{ from = ['a', 'b'] }"),
            wanted);
  EXPECT_EQ(read_table("sep=;\na;b\n1.5;2\n-3;4\n", "{ from = ['a', 'b'] }"), wanted);
  EXPECT_EQ(read_table("a,b;c\n1,5;2\n-3,0;4\n", "{ from = ['a,b', 'c'] }",
                       "separator = ';'\ndecimal = ','"),
            wanted);
  EXPECT_EQ(read_table("1.5;2\n-3;4\n", "{ from = ['a', 'b'] }", "columns = ['a', 'b']"), wanted);
  std::vector<std::string> said;
  read_table("a;b\n1;2\n", "'a'", "", &said);
  EXPECT_THAT(said, ::testing::Contains(HasSubstr("t.csv is separated by semicolons")));
}

// Blocks of a file are read by several threads, which all know its separator.
TEST(TableDialects, SeparatorOfALargeFile) {
  std::string text = "a;b\n";
  std::vector<double> wanted;
  for (int i = 0; i < 300'000; ++i) {
    text += std::to_string(i % 1000) + ";1\n";
    wanted.push_back(i % 1000);
  }
  EXPECT_EQ(read_table(text, "'a'"), wanted);
}

TEST(TableDialects, TsvWithOtherSeparators) {
  const TemporaryFolder folder;
  write_file(folder / "t.tsv", "a;b\n1;2\n");
  EXPECT_THAT(error_of([&] { open_data(data_config(folder, toml("", "'a'", "tsv"))); }),
              AllOf(HasSubstr("no column `a`"), HasSubstr("data.kind = \"csv\"")));
}

TEST(TableDialects, IndicesAndHeaders) {
  EXPECT_EQ(read_table(",a,b\n0,5,6\n1,7,8\n", "{ from = ['a', 'b'] }"),
            (std::vector<double>{5, 6, 7, 8}));
  EXPECT_EQ(read_table("\"a\",\"b\"\n\"1\",5,6\n\"2\",7,8\n", "{ from = ['a', 'b'] }"),
            (std::vector<double>{5, 6, 7, 8}));
  std::vector<std::string> said;
  EXPECT_EQ(read_table("AGE,Name\n5,x\n", "'age'", "", &said), std::vector<double>{5});
  EXPECT_THAT(said, ::testing::Contains(HasSubstr("`age` is the column `AGE`")));
  EXPECT_THAT(refusal("Age,AGE\n5,6\n", "'age'"), HasSubstr("no column `age`"));
  EXPECT_THAT(refusal("a,b\n1,2,3\n4,5,6\n4,5,7\n", "'a'"), HasSubstr("a field more"));
}

TEST(TableDialects, MarksOfNumbers) {
  const std::vector<double> wanted{1234567.5, -12.25};
  EXPECT_EQ(read_table("a;b\n1234567,5;0\n-12,25;0\n", "'a'", "decimal = ','"), wanted);
  EXPECT_EQ(read_table("a;b\n1.234.567,5;0\n-12,25;0\n", "'a'", "decimal = ','\nthousands = '.'"),
            wanted);
  EXPECT_EQ(read_table("a,b\n\"1,234,567.5\",0\n-12.25,0\n", "'a'", "thousands = ','"), wanted);
  EXPECT_EQ(read_table("a,b\n1 234 567.5,0\n-12.25,0\n", "'a'", "thousands = 'space'"), wanted);
  // No-break spaces, as French and Swiss tables have them: U+00A0 and the narrow U+202F.
  EXPECT_EQ(read_table("a,b\n1\u00a0234\u202f567.5,0\n-12.25,0\n", "'a'", "thousands = 'space'"),
            wanted);
  EXPECT_EQ(read_table("a;b\n1.234;0\n7;0\n", "{ from = 'a', as = ['int64'] }",
                       "decimal = ','\nthousands = '.'"),
            (std::vector<double>{1234, 7}));
  EXPECT_EQ(read_table("a;b\n1,5e3;0\n", "'a'", "decimal = ','"), std::vector<double>{1500});
  // Seconds since 1970 are written as numbers of this file; the value for an empty field is written
  // as a number of TOML.
  EXPECT_EQ(read_table("a;b\n1700000001,5;0\n;0\n",
                       "{ from = 'a', as = ['missing(1.5)', "
                       "'unix_time', 'float64'] }",
                       "decimal = ','"),
            (std::vector<double>{1700000001.5, 1.5}));
  EXPECT_EQ(read_table("a;b\n1.700.000.001;0\n", "{ from = 'a', as = ['unix_time', 'float64'] }",
                       "decimal = ','\nthousands = '.'"),
            std::vector<double>{1700000001});
  EXPECT_THAT(
      refusal("a;b\n1700000001.5;0\n", "{ from = 'a', as = ['unix_time'] }", "decimal = ','"),
      HasSubstr("data.decimal = \".\""));
  EXPECT_EQ(
      read_table("a;b\n;0\n2,5;0\n", "{ from = 'a', as = ['missing(1.25)'] }", "decimal = ','"),
      (std::vector<double>{1.25, 2.5}));
  // Without a key that says so nothing is guessed.
  EXPECT_THAT(refusal("a;b\n1,5;0\n", "'a'"),
              AllOf(HasSubstr("t.csv:2:1"), HasSubstr("data.decimal = \",\"")));
  EXPECT_THAT(refusal("a,b\n\"1,234,567\",0\n", "'a'"), HasSubstr("data.thousands = \",\""));
  EXPECT_THAT(refusal("a;b\n1.234,5;0\n", "'a'"),
              AllOf(HasSubstr("data.decimal = \",\""), HasSubstr("data.thousands = \".\"")));
  EXPECT_THAT(refusal("a;b\n12,34;0\n", "'a'", "thousands = ','"), HasSubstr("not a number"));
  EXPECT_THAT(refusal("a;b\n1.5;0\n", "'a'", "decimal = ','"), HasSubstr("data.decimal = \".\""));
  // No comma, no remedy of commas: a number that is too large.
  EXPECT_THAT(refusal("a,b\n1e400,0\n", "'a'"), Not(HasSubstr("data.decimal")));
  EXPECT_THAT(refusal("a;b\n1;0\n", "'a'", "thousands = '.'"),
              HasSubstr("the same mark as data.decimal"));
}

TEST(TableDialects, SpellingsOfNothing) {
  for (const std::string word : {"", "NA", "n/a", "N/A", "NaN", "nan", "None", "null", "NULL", "-",
                                 "?", " ", "#N/A", "<NA>"}) {
    SCOPED_TRACE(word);
    EXPECT_EQ(read_table("a,b\n1," + word + "\n2,7\n", "{ from = 'b', as = ['missing(-1)'] }"),
              (std::vector<double>{-1, 7}));
    EXPECT_THAT(refusal("a,b\n1," + word + "\n", "'b'"), HasSubstr("missing(0)"));
  }
  // A column of words stays words, unless it is named.
  const std::string words = "a,b\n1,NA\n2,x\n3,NA\n4,-\n";
  EXPECT_EQ(
      read_table(words, "{ from = 'b', as = [\"missing('none')\", \"classes('NA', 'x', '-')\"] }"),
      (std::vector<double>{0, 1, 0, 2}));
  EXPECT_EQ(
      read_table(words, "{ from = 'b', as = [\"missing('none')\", \"classes('none', 'x')\"] }",
                 "missing = ['NA', '-']"),
      (std::vector<double>{0, 1, 0, 0}));
  EXPECT_THAT(refusal("a,b\n1,NA\n", "{ from = 'b', as = ['missing(0)'] }", "missing = ['-']"),
              AllOf(HasSubstr("not a number"), HasSubstr("data.missing")));
}

TEST(TableDialects, BooleansAndWholeNumbers) {
  EXPECT_EQ(read_table("a,b\nTrue,1.0\nFALSE,2\n", "{ from = 'a', as = ['int64'] }"),
            (std::vector<double>{1, 0}));
  EXPECT_EQ(read_table("a,b\nTrue,1.0\nfalse,2\n", "'a'"), (std::vector<double>{1, 0}));
  EXPECT_EQ(read_table("a,b\nTrue,1.0\nFALSE,2\n", "{ from = 'b', as = ['int32'] }"),
            (std::vector<double>{1, 2}));
  EXPECT_THAT(refusal("a,b\n1.5,0\n", "{ from = 'a', as = ['int64'] }"),
              HasSubstr("not a whole number in range"));
  EXPECT_THAT(refusal("a,b\n300.0,0\n", "{ from = 'a', as = ['uint8'] }"),
              HasSubstr("not a whole number in range"));
  EXPECT_THAT(refusal("a,b\nYes,0\n", "'a'"), HasSubstr("classes('No', 'Yes')"));
  EXPECT_THAT(refusal("a,b\n12%,0\n", "'a'"), HasSubstr("percent sign"));
  EXPECT_THAT(refusal("a,b\n$9.99,0\n", "'a'"), HasSubstr("currency"));
  EXPECT_THAT(refusal("a,b\n2024-03-01,0\n", "'a'"), HasSubstr("unix_time"));
}

// Python's datetime reads the same dates (tests/scripts/field_numbers.py).
TEST(TableDialects, DatesAsPythonReadsThem) {
  const auto expected =
      nlohmann::json::parse(read_file(source_folder() + "/tests/data/field_numbers.json"))["dates"];
  for (const auto& [name, value] : expected[0]["parts"].items()) {
    SCOPED_TRACE(name);
    std::string text = "a,b\n";
    std::vector<double> wanted;
    for (const auto& date : expected) {
      text += date["cell"].get<std::string>() + ",0\n";
      wanted.push_back(date["parts"][name].get<double>());
    }
    EXPECT_EQ(read_table(text, "{ from = 'a', as = ['" + name + "', 'float64'] }"), wanted);
  }
}

TEST(TableDialects, TimesAsNumbersAndOtherForms) {
  EXPECT_EQ(read_table(
                "a,b\n1700000000,0\n1700000000123,0\n2023-11-14T22:13:20Z,0\nNaN,0\n",
                "{ from = 'a', as = ['missing(1700000001)', 'unix_time', 'normalize(1.7e9, 1)'] }"),
            (std::vector<double>{0, 0.12299990653991699, 0, 1}));
  EXPECT_EQ(read_table("a,b\n31.12.2023,0\n1.2.2024,0\n",
                       "{ from = 'a', as = [\"yearday('%d.%m.%Y')\"] }"),
            (std::vector<double>{365, 32}));
  EXPECT_EQ(read_table("a,b\n2024-03-01,0\n2024-03-03,0\n",
                       "{ from = 'a', as = ['weekday', 'one_hot(7)'] }"),
            (std::vector<double>{0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  for (const std::string cell :
       {"31.12.2023", "20240301", "2024-02-30", "2024-03-01T25:00", "soon"}) {
    EXPECT_THAT(refusal("a,b\n" + cell + ",0\n", "{ from = 'a', as = ['unix_time'] }"),
                HasSubstr("neither a number nor a date"));
  }
  EXPECT_THAT(refusal("a,b\n1,0\n", "{ from = 'a', as = [\"unix_time('%q')\"] }"), HasSubstr("%Y"));
}

}  // namespace
}  // namespace tandem
