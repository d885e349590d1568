// What `init` measures in tables, and a draft that trains. What it makes of them:
// tests/expected/commands/init_tables.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "api/init/data/table_arrays.h"
#include "api/init/facts.h"
#include "api/init/fields.h"
#include "api/program/init.h"
#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::SmallModel;
using tandem::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

InputFacts floats(const std::string& name, std::int64_t length) {
  return {name, {DType::float32, {length}}, {"batch", std::to_string(length)}, 0};
}
InputFacts ids_input(const std::string& name, std::int64_t rows) {
  return {name, {DType::int64, {}}, {"batch"}, rows};
}

DataFacts facts_of_rows(const TemporaryFolder& folder, const std::string& rows) {
  write_file(folder / "train.csv", rows);
  return look_into_data(folder.path());
}

TEST(InitTable, NumbersFarFromZeroKeepTheirDeviation) {
  Numbers all, half;
  for (int i = 0; i < 10; ++i) (i % 2 == 0 ? all : half).add(1.7e9 + i);
  all.add(half);
  EXPECT_EQ(all.count, 10);
  EXPECT_DOUBLE_EQ(all.mean(), 1.7e9 + 4.5);
  EXPECT_NEAR(all.deviation(), std::sqrt((10.0 * 10 - 1) / 12), 1e-6);
  Numbers often;
  often.add(1, 3);
  often.add(5);
  EXPECT_DOUBLE_EQ(often.mean(), 2);
  EXPECT_DOUBLE_EQ(often.deviation(), std::sqrt(3.0));  // (1 + 1 + 1 + 9) / 4
}

TEST(InitTable, ColumnsAreMeasured) {
  const TemporaryFolder folder;
  const DataFacts facts = facts_of_rows(folder, "a,b,c\n1,x,\n3,,0.5\n,y,1.5\n5,x,\n");
  EXPECT_EQ(facts.rows_read, 4);
  EXPECT_FALSE(facts.has_more_rows);
  const ArrayFacts& a = *facts.find("a");
  EXPECT_EQ(a.rows, 4);
  EXPECT_EQ(a.missing, 1);
  EXPECT_EQ(a.numbers.count, 3);
  EXPECT_EQ(a.numbers.least, 1);
  EXPECT_EQ(a.numbers.most, 5);
  EXPECT_DOUBLE_EQ(a.numbers.mean(), 3);
  EXPECT_EQ(a.sample.dtype, DType::int64);
  const ArrayFacts& b = *facts.find("b");
  EXPECT_TRUE(b.is_text);
  EXPECT_EQ(b.texts, 3);
  EXPECT_THAT(b.words, ElementsAre("", "x", "y"));
  EXPECT_FALSE(b.may_have_more_texts);
  EXPECT_EQ(facts.find("c")->missing, 2);
  EXPECT_EQ(facts.find("c")->sample.dtype, DType::float32);
}

TEST(InitTable, AColumnWithOneTextIsTextFromItsFirstRowOn) {
  const TemporaryFolder folder;
  const DataFacts facts = facts_of_rows(folder, "a\n1\n2\nother\n1\n");
  EXPECT_THAT(facts.find("a")->words, ElementsAre("1", "2", "other"));
}

TEST(InitTable, NoMoreThanTheBoundsIsLookedAt) {
  TableBounds rows;
  std::int64_t taken = 0;
  while (taken < 1'000'000 && rows.take(1)) ++taken;
  EXPECT_EQ(taken, 100'000);
  EXPECT_EQ(rows.rows(), taken);
  EXPECT_TRUE(rows.is_over());
  TableBounds bytes;
  EXPECT_TRUE(bytes.take(std::uint64_t{100} << 20)) << "one row is";
  bytes.next_file();
  EXPECT_FALSE(bytes.take(10));
  TableBounds files;
  EXPECT_TRUE(files.take(std::uint64_t{40} << 20));
  files.next_file();
  EXPECT_FALSE(files.take(std::uint64_t{30} << 20));
}

TEST(InitTable, WhatWasNotLookedAtMayHoldMoreTexts) {
  ArrayFacts column;
  column.name = "word";
  column.columns = {"word"};
  column.is_text = true;
  column.rows = 100'000;
  column.texts = 500;
  column.may_have_more_texts = true;
  EXPECT_THAT(functions_for(ids_input("word", 1001), column).as, ElementsAre("vocabulary"));
  const Functions shared = functions_for(ids_input("word", 1000), column);
  EXPECT_THAT(shared.as, ElementsAre("hash(1000)"));
  EXPECT_THAT(shared.why, HasSubstr("at least 500 different texts"));
}

TEST(InitTable, RowsOfArraysAreNormalisedByPlaceWhereScalesDiffer) {
  const auto functions = [](std::vector<float> rows) {
    const TemporaryFolder folder;
    HostTensor x(TensorType{DType::float32, {2, 2}});
    std::copy(rows.begin(), rows.end(), x.as<float>().begin());
    write_npz(folder / "a.npz", {{"x", x}});
    const DataFacts facts = look_into_data(folder.path());
    return functions_for(floats("x", 2), *facts.find("x")).as;
  };
  EXPECT_THAT(functions({1, 100, 3, 300}), ElementsAre("normalize([2, 200], [1, 100])"));
  EXPECT_THAT(functions({10, 20, 20, 10}), ElementsAre("normalize(15, 5)"));
  EXPECT_THAT(functions({1, 2, 3, 5}), IsEmpty());
}

TEST(InitTable, AWordThatNoListHoldsIsNamed) {
  EXPECT_EQ(classes_function({"a\nb", "c\td"}), "classes('a\nb', 'c\td')");
  ArrayFacts column;
  const auto unlisted = [&](const std::string& word) {
    column.words = {"", "a", word};
    EXPECT_EQ(classes_function({"a", word}), "");
    return unlisted_word(column);
  };
  EXPECT_EQ(unlisted("\x1b[1m"), "\" [1m\" holds control characters");
  EXPECT_EQ(unlisted("it's \"b\""), "\"it's \"b\"\" holds both kinds of quotes");
  EXPECT_EQ(unlisted(std::string(201, 'a')),
            "\"" + std::string(40, 'a') + "…\" is longer than 200 bytes");
  EXPECT_THAT(unlisted("\xe9"), HasSubstr("is not UTF-8"));
  column.words = {"", "a", "b"};
  EXPECT_EQ(unlisted_word(column), "");
}

TEST(InitTable, TheTargetIsKnownByItsName) {
  const TemporaryFolder folder;
  const auto labels = [&](const std::string& columns, const std::vector<std::string>& outputs) {
    DataFacts facts = facts_of_rows(folder, columns + "\n1,2,3\n4,5,6\n");
    fit_data({floats("price", 1)}, facts, outputs);
    std::string names;
    for (const ArrayFacts& array : facts.arrays) names += array.is_label ? array.name + " " : "";
    return names;
  };
  EXPECT_EQ(labels("a,target,height", {"height"}), "target ");
  EXPECT_EQ(labels("a,Heights,salary", {"height"}), "Heights ");
  EXPECT_EQ(labels("a,b,monthly_salary", {"height"}), "monthly_salary ");
  EXPECT_EQ(labels("a,sales,salary", {"height"}), "") << "one of two";
  EXPECT_EQ(labels("a,b,price", {"price"}), "") << "that is an input";
}

class InitTableRun : public ::testing::Test {
 protected:
  /// Three numbers and one of six words, with a price that depends on both.
  static std::string houses(int count) {
    const std::vector<std::string> words = {"brown", "green", "grey", "red", "white", "yellow"};
    const std::vector<double> effects = {-1, 0.8, -0.4, 1, 0.2, -0.6};
    std::uint32_t state = 1;
    const auto uniform = [&] {
      state = state * 1664525u + 1013904223u;
      return (state >> 8) / 16777216.0;
    };
    std::string rows = "area,share,distance,colour,price\n";
    for (int i = 0; i < count; ++i) {
      const double a = uniform(), b = uniform(), c = uniform();
      const auto word = static_cast<std::size_t>(uniform() * 6);
      const double price =
          0.5 + 1.2 * (a - 0.5) - 0.9 * (b - 0.5) + 0.6 * (c - 0.5) + effects[word];
      rows += std::to_string(2000 + static_cast<int>(18000 * a)) + "," + std::to_string(b * 0.05) +
              "," + std::to_string(500 + c * 100) + "," + words[word] + "," +
              std::to_string(price) + "\n";
    }
    return rows;
  }
  /// Linear in the numbers and in rows of a table.
  static SmallModel linear() {
    return SmallModel()
        .input("numbers", {8, 3})
        .input("word", {8}, 7)
        .weight("w", {3, 1}, 0.5f)
        .weight("table", {8, 4}, 0.5f)
        .weight("v", {4, 1}, 0.5f)
        .node("Gather", "embedding", {"table", "word"}, "rows")
        .node("MatMul", "head", {"rows", "v"}, "of_word")
        .node("MatMul", "fc", {"numbers", "w"}, "of_numbers")
        .node("Add", "sum", {"of_word", "of_numbers"}, "y_hat")
        .output("y_hat", {8, 1});
  }
  InitReport guess(const SmallModel& model, const std::string& rows) {
    write_file(folder_ / "net.onnx", model.bytes());
    write_file(folder_ / "rows.csv", rows);
    return init(folder_ / "net.onnx", {.data = folder_ / "rows.csv"});
  }
  std::string text() const { return read_file(folder_ / "train.toml"); }
  TrainResult train(std::vector<std::string> overrides = {}) {
    TrainOptions options;
    options.overrides = std::move(overrides);
    options.run_dir = folder_ / "run";
    return Trainer(folder_ / "train.toml", options).run();
  }

  TemporaryFolder folder_;
};

TEST_F(InitTableRun, ColumnsOfAllScalesAndWordsTrain) {
  const InitReport report = guess(linear(), houses(2000));
  ASSERT_THAT(report.open, IsEmpty()) << text();
  EXPECT_THAT(text(), AllOf(HasSubstr("word = { from = \"colour\", as = [ \"vocabulary\" ] }"),
                            HasSubstr("numbers = { from = [ \"area\", \"share\", \"distance\" ], "
                                      "as = [ \"float32\", \"normalize(["),
                            HasSubstr("metrics = [ \"rmse\", \"r2\" ]"),
                            HasSubstr("best = \"rmse\""), HasSubstr("all 2000 rows")));
  EXPECT_THAT(report.text, AllOf(HasSubstr("field      word = { from = \"colour\""),
                                 HasSubstr("6 different texts have a row each of the table's 8"),
                                 HasSubstr("metrics    [ \"rmse\", \"r2\" ]"),
                                 HasSubstr("note       columns were measured over all 2000 rows"),
                                 Not(HasSubstr("begin near 0"))));
  EXPECT_GT(train().evaluation.at("r2"), 0.9);
}

TEST_F(InitTableRun, TrainTellsEachChoiceThatNoKeySays) {
  write_file(folder_ / "net.onnx", linear().bytes());
  write_file(folder_ / "rows.csv", houses(100));
  TrainOptions options;
  options.overrides = {"steps=1", "batch_size=16", "data=" + (folder_ / "rows.csv")};
  options.run_dir = folder_ / "run";
  std::string told;
  options.on_message = [&](const std::string& line) { told += line + "\n"; };
  EXPECT_EQ(Trainer(folder_ / "net.onnx", options).run().steps, 1u);
  EXPECT_THAT(told, AllOf(HasSubstr("guessed    field      word = { from = \"colour\""),
                          HasSubstr("guessed    loss       [ { kind = \"mse\""),
                          Not(HasSubstr("guessed    batch_size"))));
  // The number of steps that was given is the length: no guessed number of epochs ends the run
  // first.
  EXPECT_THAT(told, Not(HasSubstr("guessed    epochs")));
  EXPECT_THAT(read_file(folder_ / "run/train.resolved.toml"), Not(HasSubstr("\nepochs")));
}

}  // namespace
}  // namespace tandem::api
