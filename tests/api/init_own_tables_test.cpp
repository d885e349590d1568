// Columns of texts that each look up a table of their own, and vocabularies compared with the rows
// of tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "api/init/column_tables.h"
#include "api/init/fields.h"
#include "engine/formats/files.h"
#include "tandem/init.h"
#include "tests/api/small_model.h"
#include "tests/training/error_text.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::error_of;
using tandem::testing::SmallModel;
using tandem::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// ids [8, 2]: column 0 looks up a table of `first` rows, column 1 one of `second` rows; their sum
/// is `logits` [8, 1].
std::string own_tables_model(std::int64_t first, std::int64_t second) {
  return SmallModel()
      .input("ids", {8, 2}, 7)
      .weight("first.weight", {first, 1}, 0.5f)
      .weight("second.weight", {second, 1}, 0.25f)
      .integer("zero", 0)
      .integer("one", 1)
      .node("Gather", "column0", {"ids", "zero"}, "id0", {{"axis", 1}})
      .node("Gather", "column1", {"ids", "one"}, "id1", {{"axis", 1}})
      .node("Gather", "first", {"first.weight", "id0"}, "a")
      .node("Gather", "second", {"second.weight", "id1"}, "b")
      .node("Add", "add", {"a", "b"}, "logits")
      .output("logits", {8, 1})
      .bytes();
}

/// Eight colours and two sizes in 64 rows.
std::string colours_and_sizes() {
  std::string rows = "colour,size,label\n";
  for (int i = 0; i < 64; ++i)
    rows += "c" + std::to_string(i % 8) + "," + (i % 2 == 0 ? "big" : "small") + "," +
            std::to_string(i / 3 % 2) + "\n";
  return rows;
}

class InitOwnTables : public ::testing::Test {
 protected:
  InitReport guessed(std::int64_t first, std::int64_t second) const {
    write_file(folder_ / "model.onnx", own_tables_model(first, second));
    write_file(folder_ / "train.csv", colours_and_sizes());
    return init(folder_ / "model.onnx", {.data = folder_ / "train.csv"});
  }
  void train(const std::vector<std::string>& overrides) const {
    TrainOptions options;
    options.run_dir = folder_ / "run";
    options.overrides = overrides;
    options.dry_run = true;
    Trainer trainer(folder_ / "train.toml", options);
    trainer.run();
  }
  TemporaryFolder folder_;
};

TEST_F(InitOwnTables, EachColumnHasIdsOfItsOwn) {
  const InitReport report = guessed(9, 3);
  EXPECT_THAT(report.open, IsEmpty()) << report.text;
  const std::string config = read_file(folder_ / "train.toml");
  EXPECT_THAT(config, HasSubstr("vocabulary(by='table')"));
  EXPECT_THAT(config, ::testing::Not(HasSubstr("hash(")));
  train({});
}

// If a table has exactly as many rows as texts, there is none for words that training lacks.
TEST_F(InitOwnTables, ATableWithARowForEachTextGetsOneMore) {
  const InitReport report = guessed(8, 2);
  EXPECT_THAT(report.open, IsEmpty()) << report.text;
  const std::string config = read_file(folder_ / "train.toml");
  EXPECT_THAT(config, AllOf(HasSubstr("rows = 9"), HasSubstr("rows = 3")));
  train({});
}

// Rows do not start at zero, from which an embedding learns slowly, but with the mean and deviation
// of the values in the file, here uniform from -0.5 to 0.5 and from -0.25 to 0.25.
TEST_F(InitOwnTables, RowsOfATableThatGrowsBeginAsTheFileHasThem) {
  guessed(8, 2);
  const std::string config = read_file(folder_ / "train.toml");
  EXPECT_THAT(config, ::testing::ContainsRegex(
                          "at = \"first.weight\", kind = \"normal\",.* std = 0\\.[23]"));
  train({});
}

// NA and n/a among words mean that a value is missing: they are one value, like an empty field, and
// not two words.
TEST_F(InitOwnTables, SpellingsOfNothingAreNoWordsOfTheirOwn) {
  std::string rows = "colour,size,label\n";
  for (int i = 0; i < 64; ++i) {
    const std::string colour = i == 5   ? "NA"
                               : i == 6 ? "n/a"
                               : i == 7 ? ""
                                        : "c" + std::to_string(i % 8);
    rows += colour + "," + (i % 2 == 0 ? "big" : "small") + "," + std::to_string(i / 3 % 2) + "\n";
  }
  write_file(folder_ / "model.onnx", own_tables_model(9, 3));
  write_file(folder_ / "train.csv", rows);
  const InitReport report = init(folder_ / "model.onnx", {.data = folder_ / "train.csv"});
  EXPECT_THAT(report.open, IsEmpty()) << report.text;
  EXPECT_THAT(read_file(folder_ / "train.toml"),
              AllOf(HasSubstr("missing = [ \"NA\", \"n/a\" ]"), HasSubstr("rows = 10"),
                    HasSubstr("9 of \"colour\" in 9")));
  EXPECT_THAT(report.text, HasSubstr("empty fields are also spelt"));
  train({});
}

TEST_F(InitOwnTables, ATableThatIsTooSmallIsNamedWithItsColumn) {
  const InitReport report = guessed(5, 3);
  ASSERT_THAT(report.open, ::testing::Not(IsEmpty()));
  EXPECT_THAT(report.text, AllOf(HasSubstr("8 texts of \"colour\" and 5 rows"),
                                 HasSubstr("the columns \"colour\", \"size\" seem to be meant")));
}

TEST_F(InitOwnTables, TheLineOfATableThatIsTooSmallIsOffered) {
  const InitReport report = guessed(5, 3);
  EXPECT_THAT(report.text, HasSubstr("parameters.shape = [ { at = \"first:weight\", rows = 9 } ]"));
  EXPECT_THAT(read_file(folder_ / "train.toml"),
              HasSubstr("\n# ids = { from = [ \"colour\", \"size\" ], as = [ "
                        "\"vocabulary(by='table')\" ] }\n"));
}

TEST_F(InitOwnTables, AnotherOrderThatFitsTheTablesIsOffered) {
  const InitReport report = guessed(3, 9);
  ASSERT_THAT(report.open, ::testing::Not(IsEmpty()));
  EXPECT_THAT(report.text, HasSubstr("In the order [ \"size\", \"colour\" ]"));
  EXPECT_THAT(read_file(folder_ / "train.toml"),
              HasSubstr("\n# ids = { from = [ \"size\", \"colour\" ]"));
}

TEST(InitTables, TheLargestTableIsForTheColumnWithMostTexts) {
  EXPECT_THAT(order_of_tables({5, 12, 4, 180, 8}, {10, 200, 6, 16, 8}), ElementsAre(4, 3, 2, 1, 0));
  EXPECT_THAT(order_of_tables({5, 12}, {13, 5}), IsEmpty()) << "5 texts and what training lacks";
  EXPECT_THAT(order_of_tables({5}, {13, 5}), IsEmpty());
}

/// ids [8, 2] as above, and numbers [8, 2].
std::string tables_and_numbers(std::int64_t first, std::int64_t second) {
  return SmallModel()
      .input("ids", {8, 2}, 7)
      .input("numbers", {8, 2})
      .weight("first.weight", {first, 1}, 0.5f)
      .weight("second.weight", {second, 1}, 0.25f)
      .weight("w", {2, 1}, 0.25f)
      .integer("zero", 0)
      .integer("one", 1)
      .node("Gather", "c0", {"ids", "zero"}, "id0", {{"axis", 1}})
      .node("Gather", "c1", {"ids", "one"}, "id1", {{"axis", 1}})
      .node("Gather", "first", {"first.weight", "id0"}, "a")
      .node("Gather", "second", {"second.weight", "id1"}, "b")
      .node("MatMul", "fc", {"numbers", "w"}, "c")
      .node("Add", "add", {"a", "b"}, "d")
      .node("Flatten", "flat", {"d"}, "e")
      .node("Add", "sum", {"c", "e"}, "logits")
      .output("logits", {8, 1})
      .bytes();
}

constexpr const char* sizes[] = {"big", "mid", "small"};

// If the words are in another order than their tables, the order of the numbers is unknown.
TEST_F(InitOwnTables, NumbersBesideColumnsInAnotherOrderAreAskedFor) {
  std::string rows = "day,share,colour,size,label\n";
  for (int i = 0; i < 64; ++i)
    rows += "2024-01-0" + std::to_string(1 + i % 9) + ",0." + std::to_string(10 + i) + ",c" +
            std::to_string(i % 8) + "," + sizes[i % 3] + "," + std::to_string(i / 3 % 2) + "\n";
  const auto guess = [&](std::int64_t first, std::int64_t second) {
    std::filesystem::remove(folder_ / "train.toml");
    std::filesystem::remove(folder_ / "policy.toml");
    write_file(folder_ / "model.onnx", tables_and_numbers(first, second));
    write_file(folder_ / "train.csv", rows);
    return init(folder_ / "model.onnx", {.data = folder_ / "train.csv"});
  };
  const InitReport in_order = guess(9, 4);
  EXPECT_THAT(in_order.open, IsEmpty()) << in_order.text;
  EXPECT_THAT(
      guess(4, 9).text,
      AllOf(HasSubstr("TODO       data.fields.ids"),
            HasSubstr("TODO       data.fields.numbers: are the columns [ \"day\", \"share\" ]"),
            HasSubstr("the columns of \"ids\" stand in another order than its tables")));
}

TEST_F(InitOwnTables, WholeNumbersAreWordsWhereNothingElseFits) {
  write_file(folder_ / "model.onnx", tables_and_numbers(30, 4));
  // 25 branches; the age, which follows the text, would look up the table of 4 rows.
  std::string rows = "branch,size,age,share,label\n";
  for (int i = 0; i < 100; ++i)
    rows += std::to_string(100 + i % 25) + "," + sizes[i % 3] + "," + std::to_string(20 + i % 50) +
            "," + std::to_string(i % 10) + ".5," + std::to_string(i / 3 % 2) + "\n";
  write_file(folder_ / "train.csv", rows);
  const InitReport report = init(folder_ / "model.onnx", {.data = folder_ / "train.csv"});
  EXPECT_THAT(read_file(folder_ / "train.toml"),
              AllOf(HasSubstr("\n# ids = { from = [ \"branch\", \"size\" ], as = [ "
                              "\"vocabulary(by='table')\" ] }\n"),
                    HasSubstr("\n# numbers = { from = [ \"age\", \"share\" ], as = ")));
  EXPECT_THAT(report.text, HasSubstr("if the whole numbers of \"branch\" are words"));
}

// The error comes before the first step: field, column, value, row and table.
TEST_F(InitOwnTables, AnIdWithoutARowIsNamedBeforeTraining) {
  guessed(9, 3);
  write_file(folder_ / "model.onnx", own_tables_model(7, 3));
  const std::string error = error_of([&] { train({}); });
  EXPECT_THAT(error, AllOf(HasSubstr("data.fields.ids"), HasSubstr("\"first.weight\", which has 7"),
                           HasSubstr("train.csv:"), HasSubstr("the text \"c"),
                           HasSubstr("of the column \"colour\"")));
}

}  // namespace
}  // namespace tandem::api
