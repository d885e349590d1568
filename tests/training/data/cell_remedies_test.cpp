// Messages about cells and rows of text tables that cannot be read: remedies that hold for the
// whole file, one message for one fault, warnings about what is left out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/training/data/data_source.h"
#include "tests/training/data/data_config_text.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using testing::data_config;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TemporaryFolder;

class CellRemedies : public ::testing::Test {
 protected:
  DataConfig config(const std::string& text, const std::string& field,
                    const std::string& keys = "") {
    write_file(folder_ / "t.csv", text);
    return data_config(folder_, "kind = 'csv'\nseparator = ';'\n" + keys +
                                    "\ntrain = { files = ['t.csv'], shuffle = 'none' }\n"
                                    "fields = { x = " +
                                    field + " }\n");
  }
  std::string refusal(const std::string& text, const std::string& field,
                      const std::string& keys = "") {
    return error_of([&] { open_data(config(text, field, keys)); });
  }
  std::vector<double> values(const std::string& text, const std::string& field) {
    const DataSets sets = open_data(config(text, field));
    std::vector<double> numbers;
    for (std::int64_t row = 0; row < sets.train->samples(); ++row) {
      HostTensor sample(sets.train->fields()[0].sample);
      sets.train->fill(0, std::vector<std::int64_t>{row}, nullptr, sample.data());
      for (std::int64_t i = 0; i < sample.type().elements(); ++i)
        numbers.push_back(sample.number(i));
    }
    return numbers;
  }
  TemporaryFolder folder_;
};

const std::string stacked_times = "{ from = ['a', 'b'], as = ['unix_time', 'float32'] }";

// Each mark would be refused in the other column.
TEST_F(CellRemedies, ColumnsThatAreWrittenInTwoWays) {
  for (const std::string& field : {std::string("{ from = ['a', 'b'] }"), stacked_times}) {
    EXPECT_THAT(
        refusal("a;b\n1,50;2.5\n", field),
        AllOf(HasSubstr("got \"1,50\" (`b` has \"2.5\", which data.decimal = \",\" does not "
                        "read: write the numbers of all columns alike in the file)")));
    EXPECT_THAT(
        refusal("a;b\n1,50;2.5\n", field, "decimal = ','"),
        HasSubstr("got \"2.5\" (`a` has \"1,50\", which data.decimal = \".\" does not read: "
                  "write the numbers of all columns alike"));
    EXPECT_THAT(refusal("a;b\n15092,00;2.5\n", field, "decimal = ','"),
                HasSubstr("`a` has \"15092,00\", which data.decimal = \".\" does not read"));
    // In one column, one row after the other.
    EXPECT_THAT(refusal("a;b\n1.50;7\n2,5;7\n", field),
                HasSubstr("`a` has \"1.50\", which data.decimal = \",\" does not read"));
    // Whole numbers are written alike under either mark.
    EXPECT_THAT(refusal("a;b\n1,50;2\n", field), HasSubstr("got \"1,50\" (data.decimal = \",\")"));
  }
  // Next to fractions with a point, a comma separates thousands, where it can.
  EXPECT_THAT(refusal("a;b\n1,500;2.5\n", "{ from = ['a', 'b'] }"),
              HasSubstr("got \"1,500\" (data.thousands = \",\")"));
}

TEST_F(CellRemedies, DatesAndNumbersOfOtherForms) {
  EXPECT_THAT(refusal("a;b\n1;49 years\n", stacked_times),
              AllOf(HasSubstr("neither a number nor a date"),
                    HasSubstr("(take the unit out of the file: 49 instead of \"49 years\"")));
  EXPECT_THAT(refusal("a;b\n1;31.12.2023\n", stacked_times),
              HasSubstr("(unix_time('%d.%m.%Y') reads such dates)"));
  EXPECT_THAT(refusal("a;b\n1;31/12/2023 10:30\n", stacked_times),
              HasSubstr("(unix_time('%d/%m/%Y %H:%M') reads such dates)"));
  EXPECT_THAT(refusal("a;b\n1;03/04/2024\n", stacked_times),
              HasSubstr("(unix_time('%d/%m/%Y') or unix_time('%m/%d/%Y') reads such dates)"));
  EXPECT_THAT(refusal("a;b\n1;20240301\n", stacked_times), HasSubstr("unix_time('%Y%m%d')"));
  for (const std::string cell : {"soon", "2024-02-30"})
    EXPECT_THAT(refusal("a;b\n1;" + cell + "\n", stacked_times), Not(HasSubstr("unix_time(")));
}

// The remedy for one column of a stack leaves the others as they are.
TEST_F(CellRemedies, AFormOfDatesIsReadBesidesTheUsualOnes) {
  EXPECT_THAT(values("a;b;c\n31.12.2023;2.5;1970-01-02\nNULL;-3;1970-01-01T00:00:05\n",
                     "{ from = ['a', 'b', 'c'], as = ['missing([7, 0, 0])', "
                     "\"unix_time('%d.%m.%Y')\", 'float64'] }"),
              ElementsAre(1703980800, 2.5, 86400, 7, -3, 5));
}

TEST_F(CellRemedies, AValueOfMissingIsToldWithTheCellOfTheFile) {
  EXPECT_THAT(refusal("a;b\n1;NULL\n", "{ from = 'b', as = [\"missing('none')\"] }"),
              HasSubstr("got \"NULL\", for which `missing` has \"none\""));
}

TEST_F(CellRemedies, LabelsThatAreEmpty) {
  EXPECT_THAT(
      refusal("a;b\n1;\n", "{ from = 'b', as = [\"classes('N', 'Y')\"] }"),
      AllOf(HasSubstr("empty: expected \"N\", \"Y\", got \"\" (data.on_bad = \"skip\" leaves "
                      "such rows out)"),
            Not(HasSubstr("missing(0)"))));
  EXPECT_THAT(refusal("a;b\n1;\n", "'b'"),
              AllOf(HasSubstr("begin `as` with \"missing(0)\""), HasSubstr("data.on_bad")));
}

TEST_F(CellRemedies, OtherWordsForClasses) {
  const std::string field = "{ from = 'a', as = [\"classes('N', 'Y')\"] }";
  EXPECT_THAT(refusal("a;b\nYes;1\n", field), HasSubstr("did you mean \"Y\"?"));
  EXPECT_THAT(refusal("a;b\nno;1\n", field), HasSubstr("did you mean \"N\"?"));
  EXPECT_THAT(refusal("a;b\n1;1\n", field), Not(HasSubstr("did you mean")));
}

// A word in Latin-1 differs from the same word in UTF-8, so it would count as unknown.
TEST_F(CellRemedies, WordsAreTextInUtf8) {
  for (const char* function : {"vocabulary", "hash(10)", "classes('M\xc3\xbcller', 'x')"}) {
    const std::string field = std::string("{ from = 'b', as = [\"") + function + "\"] }";
    EXPECT_THAT(refusal("a;b\n1;x\n2;M\xfcller\n", field),
                AllOf(HasSubstr("t.csv:3:2"), HasSubstr("column `b`: no text in UTF-8"),
                      HasSubstr("got \"M\\xfcller\""), HasSubstr("iconv -f WINDOWS-1252 -t UTF-8")))
        << function;
    EXPECT_EQ(refusal("a;b\n1;x\n2;M\xc3\xbcller\n", field), "no error") << function;
  }
  // Columns that are not read as words may hold any bytes.
  EXPECT_EQ(refusal("a;b\n1;M\xfcller\n", "'a'"), "no error");
}

TEST_F(CellRemedies, AMissingColumnIsToldOnce) {
  const std::string text =
      refusal("a;b\n1;2\n", "{ from = ['a', 'c', 'b'], as = ['missing([1, 2, 3])'] }");
  EXPECT_THAT(text, AllOf(HasSubstr("no column `c`"), Not(HasSubstr("`missing` has"))));
}

TEST_F(CellRemedies, ManyRowsThatAreLeftOutAreAWarning) {
  const auto told = [&](int rows) {
    std::string text = "a;b\nx;1\n";
    for (int i = 1; i < rows; ++i) text += "1;1\n";
    std::string said;
    OpenOptions options;
    options.on_message = [&](const std::string& line) { said += line + "\n"; };
    const DataSets sets = open_data(config(text, "'a'", "on_bad = 'skip'"), options);
    const std::string counts = "1 of " + std::to_string(rows) + " rows were left out; the first: ";
    EXPECT_THAT(said, HasSubstr(counts + (folder_ / "t.csv:2:1")));
    return sets.warnings;
  };
  EXPECT_THAT(told(100), IsEmpty());
  EXPECT_THAT(told(99), ElementsAre(AllOf(HasSubstr("training data: 1 of 99 rows were left out"),
                                          HasSubstr("not a number"))));
}

TEST_F(CellRemedies, YearsAmongDatesAreAWarning) {
  const auto warnings = [&](const std::string& cells, const std::string& part) {
    return open_data(config("a;b\n" + cells, "{ from = 'a', as = ['missing(0)', '" + part + "'] }"))
        .warnings;
  };
  const std::string dates = "2024-03-01;1\n2024-03-02;1\n;1\n1700000000;1\n";
  for (int i = 0; i < 2; ++i) {  // the prepared table says the same again
    EXPECT_THAT(
        warnings(dates + "2024;1\n", "unix_time"),
        ElementsAre(HasSubstr("training data: `a` holds 2 dates and 1 plain number below 100000")));
  }
  EXPECT_THAT(warnings("45000;1\n" + dates, "unix_time"), ElementsAre(HasSubstr("1 plain number")));
  EXPECT_THAT(warnings(dates, "unix_time"), IsEmpty());
  EXPECT_THAT(warnings("1;1\n2024;1\n", "unix_time"), IsEmpty());
  EXPECT_THAT(warnings("1970-01-01;1\n2024-03-02;1\n", "unix_time"), IsEmpty());
  EXPECT_THAT(warnings("2024;1\n2024-03-02;1\n", "weekday"), IsEmpty());
}

}  // namespace
}  // namespace tandem
