// Which columns of a table `init` uses for a row of numbers: identifiers are left out where the
// others have the right number, and open questions offer the columns to choose from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "api/init/facts.h"
#include "engine/formats/files.h"
#include "tandem/init.h"
#include "tests/api/error_of.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::error_of;
using tandem::testing::SmallModel;
using tandem::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class InitColumns : public ::testing::Test {
 protected:
  /// A model with one score from `numbers` numbers.
  static SmallModel score_of(std::int64_t numbers) {
    return SmallModel()
        .input("numbers", {8, numbers})
        .weight("w", {numbers, 1}, 0.5f)
        .node("MatMul", "fc", {"numbers", "w"}, "y_hat")
        .output("y_hat", {8, 1});
  }
  /// An identifier, four columns of numbers, of which one has an empty field, and a label of 0 or
  /// 1.
  static std::string customers(const std::string& label, int count = 60) {
    std::string rows = "customer,age,income,tenure,calls," + label + "\n";
    for (int i = 0; i < count; ++i) {
      rows += std::to_string(1000 + 7 * i) + "," + std::to_string(20 + i % 9) + "," +
              std::to_string(1000 + i) + ".5," + (i == 3 ? "" : std::to_string(i % 7)) + "," +
              std::to_string(i % 4) + "," + std::to_string(i % 2) + "\n";
    }
    return rows;
  }
  /// Adds 60 rows to these lines: four numbers, and 0 or 1.
  static std::string few_numbers(std::string rows) {
    for (int i = 0; i < 60; ++i) {
      rows += std::to_string(i % 7) + "," + std::to_string(i % 5) + "," + std::to_string(i % 3) +
              ",1," + std::to_string(i % 2) + "\n";
    }
    return rows;
  }
  InitReport guess(const SmallModel& model, const std::string& rows) {
    write_file(folder_ / "net.onnx", model.bytes());
    write_file(folder_ / "rows.csv", rows);
    return init(folder_ / "net.onnx", {.data = folder_ / "rows.csv"});
  }
  std::string text() const { return read_file(folder_ / "train.toml"); }
  /// The error of `train MODEL --data` for the files as they are.
  std::string open_in_training() {
    TrainOptions options;
    options.overrides = {"steps=1", "data=" + (folder_ / "rows.csv")};
    return error_of([&] { Trainer(folder_ / "net.onnx", options); });
  }
  void train_two_steps() {
    TrainOptions options;
    options.overrides = {"steps=2"};
    options.run_dir = folder_ / "run";
    EXPECT_EQ(Trainer(folder_ / "train.toml", options).run().steps, 2u);
  }

  TemporaryFolder folder_;
};

const std::string four_columns =
    "numbers = { from = [ \"age\", \"income\", \"tenure\", \"calls\" ], as = [ \"missing(";

TEST_F(InitColumns, AnIdentifierIsLeftOutWhereTheOthersAreAsMany) {
  const InitReport report = guess(score_of(4), customers("churned"));
  ASSERT_THAT(report.open, IsEmpty()) << text();
  EXPECT_THAT(text(), AllOf(HasSubstr("\n" + four_columns), HasSubstr("\"normalize([")));
  EXPECT_THAT(report.text,
              AllOf(HasSubstr("without \"customer\", an identifier: each of the values is there "
                              "once"),
                    HasSubstr("nothing reads the columns customer")));
  train_two_steps();
}

TEST_F(InitColumns, AnIdentifierIsTakenWhereTheInputHasAPlaceForIt) {
  EXPECT_THAT(guess(score_of(5), customers("target")).open, IsEmpty());
  EXPECT_THAT(text(), HasSubstr("numbers = { from = [ \"customer\", \"age\", "));
}

TEST_F(InitColumns, FewRowsHaveNoIdentifiers) {
  const InitReport report = guess(score_of(4), customers("target", 10));
  ASSERT_EQ(report.open.size(), 1u);
  EXPECT_THAT(report.open[0].message,
              AllOf(HasSubstr("which 4 of the 5 columns [ \"customer\", \"age\", \"income\", "
                              "\"tenure\", \"calls\" ] are those of float32["),
                    Not(HasSubstr("an identifier")), Not(HasSubstr("what is learned"))));
}

// A column whose name is not that of a label may be an input: only the loss shows that it is none.
TEST_F(InitColumns, ALabelThatTheLossAloneKnowsLeavesColumnsToConfirm) {
  const InitReport report = guess(score_of(4), customers("gone"));
  ASSERT_EQ(report.open.size(), 1u) << text();
  EXPECT_EQ(report.open[0].path, "data.fields.numbers");
  EXPECT_THAT(
      report.open[0].message,
      AllOf(HasSubstr("are the columns [ \"age\", \"income\", \"tenure\", \"calls\" ] those of "
                      "float32["),
            HasSubstr("without \"customer\", an identifier"),
            HasSubstr("\"gone\" is taken for what is learned, since it goes with the loss"),
            HasSubstr("call it \"target\"")));
  EXPECT_THAT(report.text, AllOf(HasSubstr("nothing reads the columns customer\n"),
                                 HasSubstr("binary_cross_entropy")));
  // The offered line trains unchanged.
  std::string edited = text();
  const std::size_t at = edited.find("\n# " + four_columns);
  ASSERT_NE(at, std::string::npos) << edited;
  write_file(folder_ / "train.toml", edited.erase(at + 1, 2));
  train_two_steps();
}

/// A date, an age, a number with this many digits, calls, and 0 or 1.
std::string dates_beside(std::int64_t number, const std::string& label, std::int64_t step = 1000) {
  std::string rows = "signup,age,last,calls," + label + "\n";
  for (int i = 0; i < 60; ++i)
    rows += "2020-0" + std::to_string(1 + i % 9) + "-01," + std::to_string(20 + i % 9) + "," +
            std::to_string(number + step * i) + "," + std::to_string(i % 4) + "," +
            std::to_string(i % 2) + "\n";
  return rows;
}

// A date among numbers counts like the others: as many columns as the input needs are its own.
TEST_F(InitColumns, ColumnsWithADateAreTakenWhereTheyAreAsMany) {
  const InitReport report = guess(score_of(4), dates_beside(1716548752, "target"));
  ASSERT_THAT(report.open, IsEmpty()) << text();
  EXPECT_THAT(text(),
              HasSubstr("\nnumbers = { from = [ \"signup\", \"age\", \"last\", \"calls\" ], "
                        "as = [ \"unix_time\", \"float32\", \"normalize("));
  EXPECT_THAT(report.text, HasSubstr("dates count in seconds since 1970"));
  train_two_steps();
}

// unix_time takes eight digits for a date: the reason is reported, and nothing is chosen.
TEST_F(InitColumns, NumbersThatWouldCountAsDatesAreNamed) {
  const InitReport report = guess(score_of(4), dates_beside(20200101, "target", 1));
  ASSERT_EQ(report.open.size(), 1u) << text();
  EXPECT_THAT(report.open[0].message,
              AllOf(HasSubstr("would take those of \"last\" for dates, too"),
                    Not(HasSubstr("call it \"target\""))));
}

// The advice also works for dates: a target with its usual name leaves the right columns.
TEST_F(InitColumns, ATodoOfTrainingNamesTheLineToAddAndItWorks) {
  guess(score_of(4), dates_beside(1716548752, "gone"));
  const std::string told = open_in_training();
  EXPECT_THAT(told, AllOf(HasSubstr("call it \"target\""),
                          HasSubstr("add 'data.fields.numbers={ from = [ \"signup\", ")));
  const std::size_t from = told.find("add '") + 5, to = told.find("' to the line", from);
  ASSERT_NE(to, std::string::npos) << told;
  TrainOptions options;
  options.overrides = {"steps=2", "data=" + (folder_ / "rows.csv"), told.substr(from, to - from)};
  options.run_dir = folder_ / "run";
  EXPECT_EQ(Trainer(folder_ / "net.onnx", options).run().steps, 2u);
}

TEST_F(InitColumns, ADryRunNamesTheLineOfATodo) {
  guess(score_of(4), dates_beside(1716548752, "gone"));
  const std::string config = text();
  const std::size_t at = config.find("# TODO numbers");
  ASSERT_NE(at, std::string::npos) << config;
  const auto line =
      1 + std::count(config.begin(), config.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  TrainOptions options;
  options.dry_run = true;
  EXPECT_THAT(
      error_of([&] { Trainer(folder_ / "train.toml", options).run(); }),
      AllOf(HasSubstr("train.toml:" + std::to_string(line)), HasSubstr("it is still a TODO here")));
}

TEST_F(InitColumns, MoreColumnsThanTheInputTakesAreOfferedToShorten) {
  const InitReport report = guess(score_of(3), customers("target"));
  ASSERT_EQ(report.open.size(), 1u) << text();
  EXPECT_THAT(report.open[0].message,
              AllOf(HasSubstr("which 3 of the 4 columns [ \"age\", "), HasSubstr("Strike out"),
                    HasSubstr("without \"customer\"")));
  EXPECT_THAT(text(), AllOf(HasSubstr("\n# " + four_columns), Not(HasSubstr("ARRAY"))));
  EXPECT_THAT(open_in_training(),
              HasSubstr("data.fields.numbers: cannot be guessed: which 3 of the 4 columns"));
}

TEST_F(InitColumns, FewerColumnsThanTheInputTakesAreNamed) {
  const InitReport report = guess(score_of(9), customers("target"));
  ASSERT_EQ(report.open.size(), 1u) << text();
  EXPECT_THAT(report.open[0].message, HasSubstr("takes 9 columns, and 5 are left: [ \"customer\""));
}

TEST_F(InitColumns, AColumnWithATextAmongItsNumbersIsNamed) {
  const std::string named = "; \"a\" holds the text \"oops\" in line 3 of rows.csv";
  const InitReport report =
      guess(score_of(4), few_numbers("a,b,c,d,label\n0,1,2,1,0\noops,1,2,1,1\n"));
  ASSERT_EQ(report.open.size(), 1u) << text();
  EXPECT_THAT(report.open[0].message,
              AllOf(HasSubstr("takes 4 columns, and 3 are left: [ \"b\", \"c\", \"d\" ]" + named),
                    HasSubstr("an empty field would be filled")));
  write_file(folder_ / "rows.csv", "a,label\n1,0\noops,1\n");
  EXPECT_THAT(open_in_training(), HasSubstr("no array fits"));
  EXPECT_THAT(open_in_training(), HasSubstr(named));
  write_file(folder_ / "rows.csv", few_numbers("b,c,d,e,label\n0,1,2,1,0.5\n0,1,2,1,oops\n"));
  EXPECT_THAT(open_in_training(), HasSubstr("\"label\" holds the text \"oops\" in line 3"));
}

/// Four numbers and "yes" or "no"; of 60 rows, those at multiples of `step` have `in_place`
/// instead.
std::string answers(const std::string& label, const std::string& in_place, int step) {
  std::string rows = "a,b,c,d," + label + "\n";
  for (int i = 0; i < 60; ++i)
    rows += std::to_string(i % 7) + "," + std::to_string(i % 5) + "," + std::to_string(i % 3) +
            ",1," +
            (i % step == 1 ? in_place
             : i % 2 == 0  ? "yes"
                           : "no") +
            "\n";
  return rows;
}

// Three of 60 rows have no label: the target stays the same, and these rows are left out.
TEST_F(InitColumns, AFewRowsWithoutALabelAreLeftOut) {
  for (const char* label : {"gone", "target"}) {
    SCOPED_TRACE(label);
    std::filesystem::remove(folder_ / "train.toml");
    std::filesystem::remove(folder_ / "policy.toml");
    const InitReport report = guess(score_of(4), answers(label, "", 20));
    ASSERT_THAT(report.open, IsEmpty()) << text();
    EXPECT_THAT(text(), AllOf(HasSubstr("\non_bad = \"skip\"\n"),
                              HasSubstr("\"classes('no', 'yes')\", \"float32\"")));
    EXPECT_THAT(report.text,
                HasSubstr("3 rows have no \"" + std::string(label) + "\": data.on_bad = \"skip\""));
  }
  train_two_steps();
}

TEST_F(InitColumns, ATargetThatIsOftenEmptyIsAskedFor) {
  EXPECT_THAT(guess(score_of(4), answers("target", "", 10)).open, Not(IsEmpty())) << text();
  EXPECT_THAT(text(), Not(HasSubstr("on_bad")));
}

TEST_F(InitColumns, NamesAreThoseThatTrainingReads) {
  const InitReport report = guess(score_of(4), few_numbers("\n a, b ,c,  d, label\n"));
  ASSERT_THAT(report.open, IsEmpty()) << text();
  EXPECT_THAT(text(), AllOf(HasSubstr("from = [ \"a\", \"b\", \"c\", \"d\" ]"),
                            HasSubstr("label = { from = \"label\"")));
  train_two_steps();
}

TEST_F(InitColumns, NamesAndWordsMayHaveSeveralLines) {
  std::string rows = "a,b,c,d,\"the\nlabel\"\n";
  for (int i = 0; i < 60; ++i)
    rows += std::to_string(i % 7) + ",1,2,3," + (i % 2 == 0 ? "\"x\ny\"" : "z") + "\n";
  ASSERT_THAT(guess(score_of(4), rows).open, IsEmpty()) << text();
  EXPECT_THAT(text(), HasSubstr("\"the\\u000Alabel\" = { from = \"the\\u000Alabel\", as = [ "
                                "\"classes('x\\u000Ay', 'z')\", \"float32\" ] }"));
  train_two_steps();
}

TEST_F(InitColumns, IdentifiersAreWholeNumbersOrTextsThatAreThereOnce) {
  std::string table = "id,word,share,often,gap,label\n", lines;
  for (int i = 0; i < 30; ++i) {
    const std::string n = std::to_string(i);
    table +=
        n + ",w" + n + "," + n + ".5," + std::to_string(i % 29) + "," + (i == 4 ? "" : n) + ",0\n";
    lines += "{\"id\": " + n + ", \"word\": \"w" + n + "\", \"share\": " + n +
             ".5, \"often\": " + std::to_string(i % 29) + ", \"gap\": " + (i == 4 ? "null" : n) +
             ", \"label\": 0}\n";
  }
  write_file(folder_ / "rows.csv", table);
  write_file(folder_ / "rows.jsonl", lines);
  for (const std::string name : {"rows.csv", "rows.jsonl"}) {
    SCOPED_TRACE(name);
    const DataFacts facts = look_into_data(folder_ / name);
    EXPECT_TRUE(facts.find("id")->is_identifier);
    EXPECT_TRUE(facts.find("word")->is_identifier);
    EXPECT_FALSE(facts.find("share")->is_identifier);
    EXPECT_FALSE(facts.find("often")->is_identifier);
    EXPECT_FALSE(facts.find("gap")->is_identifier);
  }
}

}  // namespace
}  // namespace tandem::api
