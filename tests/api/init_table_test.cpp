// What `init` measures in tables and makes of it: functions of columns, targets, labels that are
// words, and a draft that trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "api/init/data/table_arrays.h"
#include "api/init/facts.h"
#include "api/init/fields.h"
#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "tandem/init.h"
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

/// The field of one input over this table.
FieldGuess field_of(const InputFacts& input, const std::string& rows) {
  const TemporaryFolder folder;
  DataFacts facts = facts_of_rows(folder, rows);
  fit_data({input}, facts);
  FieldGuess field = guess_fields({input}, facts).fields.at(0);
  field.from = nullptr;  // it points into the facts, which end here
  return field;
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

TEST(InitTable, TextsHaveARowOfTheTableEach) {
  const std::string rows = "word,label\nred,0\ngreen,1\nblue,0\nred,1\n";
  // 0 is the row of texts that training lacks.
  EXPECT_THAT(field_of(ids_input("word", 4), rows).as, ElementsAre("vocabulary"));
  EXPECT_THAT(field_of(ids_input("word", 3), rows).as,
              ElementsAre("classes('blue', 'green', 'red')"));
  const FieldGuess shared = field_of(ids_input("word", 2), rows);
  EXPECT_THAT(shared.as, ElementsAre("hash(2)"));
  // A text has a row to itself where both others are in the other row: probability 1 / 4.
  EXPECT_THAT(shared.why, AllOf(HasSubstr("3 different texts share the table's 2 rows"),
                                HasSubstr("about 75 % of them have a row together with others"),
                                HasSubstr("with 4 rows (`parameters.shape`)")));
}

TEST(InitTable, AnEmptyTextIsAWordOfLists) {
  const FieldGuess word = field_of(ids_input("word", 3), "word,label\nred,0\n,1\nblue,0\n");
  EXPECT_THAT(word.as, ElementsAre("missing('none')", "classes('none', 'blue', 'red')"));
  EXPECT_THAT(word.why, HasSubstr("3 different texts, the empty one included"));
  EXPECT_THAT(field_of(ids_input("word", 3), "word,label\nnone,0\n,1\nblue,0\n").as,
              ElementsAre("missing('none_')", "classes('none_', 'blue', 'none')"));
  EXPECT_THAT(field_of(floats("word", 3), "word,label\nred,0\n,1\nblue,0\n").as,
              ElementsAre("missing('none')", "classes('none', 'blue', 'red')", "one_hot(3)"));
  EXPECT_THAT(field_of(ids_input("word", 4), "word,label\nred,0\n,1\nblue,0\n").as,
              ElementsAre("vocabulary"));
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

TEST(InitTable, AsManyTextsAsNumbersAreOneHot) {
  const std::string rows = "word,label\nit's,0\nred,1\nblue,0\n";
  EXPECT_THAT(field_of(floats("word", 3), rows).as,
              ElementsAre("classes('blue', \"it's\", 'red')", "one_hot(3)"));
  EXPECT_THAT(field_of(floats("word", 4), rows).todo, HasSubstr("does not fit"));
}

TEST(InitTable, ColumnsAreNormalisedEachForItself) {
  // 0.01 and 0.03 have a deviation of 0.01; flags are not changed; a constant becomes 0.
  EXPECT_THAT(field_of(floats("x", 3), "x1,x2,x3,label\n0.01,0,7,0\n0.03,1,7,1\n").as,
              ElementsAre("float32", "normalize([0.02, 0, 7], [0.01, 1, 1])"));
  EXPECT_THAT(field_of(floats("x", 2), "x1,x2,label\n-1,2,0\n1,4,1\n").as, ElementsAre("float32"));
}

TEST(InitTable, AnEmptyFieldIsTheMeanOfItsColumn) {
  const FieldGuess one = field_of(floats("x", 1), "x,label\n1,0\n,1\n2,1\n");
  EXPECT_THAT(one.as, ElementsAre("missing(1.5)", "float32", "reshape(1)"));
  EXPECT_THAT(one.why, HasSubstr("an empty field counts as 1.5, the mean"));
  EXPECT_EQ(field_of(floats("x", 2), "x1,x2,label\n1,4,0\n,5,1\n2,6,1\n").as.at(0),
            "missing([1.5, 5])");
  EXPECT_EQ(field_of(floats("x", 2), "x1,x2,label\n1,,0\n,5,1\n2,6,1\n").as.at(0),
            "missing([1.5, 5.5])");
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

TEST(InitTable, WholeNumbersWithAPointAreReadAsFloatsFirst) {
  const InputFacts ids = ids_input("id", 1 << 26);
  EXPECT_THAT(field_of(ids, "id,label\n1,0\n+2,1\n 3,0\n").as, ElementsAre("int64"));
  EXPECT_THAT(field_of(ids, "id,label\n1,0\n2.0,1\n3,0\n").as, ElementsAre("float32", "int64"));
  EXPECT_THAT(field_of(ids, "id,label\n1,0\n2e0,1\n3,0\n").as, ElementsAre("float32", "int64"));
  EXPECT_THAT(field_of(ids, "id,label\n1,0\n20000001.0,1\n3,0\n").as,
              ElementsAre("float64", "int64"));
}

TEST(InitTable, WhatFloat32DoesNotHoldIsNotNormalised) {
  const FieldGuess field = field_of(floats("x", 2), "x1,x2,label\n1,5,0\n2,-1e300,1\n");
  EXPECT_THAT(field.as, IsEmpty());
  EXPECT_THAT(field.todo, HasSubstr("\"x2\" holds -1e+300, which does not fit float32"));
  EXPECT_THAT(field_of(floats("x", 2), "x1,x2,label\n1,5,0\n2,-3e38,1\n").as.at(1),
              HasSubstr("normalize("));
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

TEST(InitTable, OpenFieldsSayThatNoColumnIsCalledAsTheTarget) {
  const std::string values = "\n1,2,3\n4,5,6\n";
  EXPECT_THAT(field_of(floats("x", 2), "a,b,c" + values).todo, HasSubstr("call it \"target\""));
  EXPECT_THAT(field_of(floats("x", 4), "a,b,label" + values).todo,
              AllOf(HasSubstr("no array fits"), Not(HasSubstr("target"))));
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
  static SmallModel dense(std::int64_t outputs) {
    return SmallModel()
        .input("x", {8, 4})
        .weight("w", {4, outputs}, 0.5f)
        .node("MatMul", "fc", {"x", "w"}, "y_hat")
        .output("y_hat", {8, outputs});
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

TEST_F(InitTableRun, AsManyTextsAsRowsTrainWithAnEmptyOne) {
  const std::vector<std::string> words = {"", "a", "b", "c", "d", "e", "f", "g"};
  std::string rows = "area,share,distance,colour,price\n";
  for (std::size_t i = 0; i < 64; ++i)
    rows += "1.5," + std::to_string(i % 3) + ".25," + std::to_string(i % 5) + ".75," +
            words[i % 8] + "," + std::to_string(i % 8) + ".5\n";
  ASSERT_THAT(guess(linear(), rows).open, IsEmpty()) << text();
  EXPECT_THAT(text(), HasSubstr("\"missing('none')\", \"classes('none', 'a', 'b', 'c', 'd', "
                                "'e', 'f', 'g')\""));
  EXPECT_EQ(train({"steps=2"}).steps, 2u);
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
}

TEST_F(InitTableRun, LargeTargetsAreToldWithTheFirstLoss) {
  std::string rows = "a,b,c,d,target\n";
  for (int i = 0; i < 40; ++i)
    rows += std::to_string(i % 3) + "," + std::to_string(i % 5) + ",1," + std::to_string(i % 2) +
            "," + (i % 2 == 0 ? "2000" : "4000") + "\n";
  const InitReport report = guess(dense(1), rows);
  EXPECT_THAT(report.open, IsEmpty());
  // 3000² + 1000²
  EXPECT_THAT(report.text, AllOf(HasSubstr("mean 3000 and deviation 1000"), HasSubstr("1e+07"),
                                 HasSubstr("normalize(3000, 1000)")));
}

TEST_F(InitTableRun, WordsAreClasses) {
  std::string rows = "a,b,c,d,species\n";
  for (int i = 0; i < 60; ++i)
    rows += std::to_string(i % 7) + ",1.5,2,3," +
            (i % 3 == 0   ? "virginica"
             : i % 3 == 1 ? "setosa"
                          : "versicolor") +
            std::string("\n");
  EXPECT_THAT(guess(dense(3), rows).open, IsEmpty()) << text();
  EXPECT_THAT(text(), AllOf(HasSubstr("species = { from = \"species\", as = [ "
                                      "\"classes('setosa', 'versicolor', 'virginica')\" ] }"),
                            HasSubstr("kind = \"softmax_cross_entropy\"")));
  EXPECT_EQ(train({"steps=2"}).steps, 2u);
}

TEST_F(InitTableRun, LabelsWithAPointAreClasses) {
  std::string rows = "a,b,c,d,label\n";
  for (int i = 0; i < 60; ++i)
    rows += std::to_string(i % 7) + ",1.5,2,3," + std::to_string(i % 3) + ".0\n";
  EXPECT_THAT(guess(dense(3), rows).open, IsEmpty()) << text();
  EXPECT_THAT(text(), HasSubstr("label = { from = \"label\", as = [ \"float32\", \"int64\" ] }"));
  EXPECT_EQ(train({"steps=2"}).steps, 2u);
}

TEST_F(InitTableRun, WordsThatAreNoUtf8AreNamed) {
  std::string rows = "a,b,c,d,species\n";
  for (int i = 0; i < 60; ++i)
    rows += std::to_string(i % 7) + ",1.5,2,3," + (i % 2 == 0 ? "\xe9" : "\xfc") + "\n";
  for (const std::int64_t outputs : {3, 1}) {
    std::filesystem::remove(folder_ / "train.toml");
    std::filesystem::remove(folder_ / "policy.toml");
    EXPECT_THAT(guess(dense(outputs), rows).text,
                HasSubstr("\"species\" holds 2 different texts, which classes(…) cannot list: "
                          "\"\xef\xbf\xbd\" is not UTF-8"))
        << outputs;
  }
}

TEST_F(InitTableRun, TargetsBeyondFloat32AreNamed) {
  std::string rows = "a,b,c,d,target\n";
  for (int i = 0; i < 60; ++i)
    rows += std::to_string(i % 7) + ",1.5,2,3," + (i == 5 ? "1e300" : "1") + "\n";
  const InitReport report = guess(dense(1), rows);
  EXPECT_THAT(report.text, AllOf(HasSubstr("\"target\" holds 1e+300, which does not fit float32"),
                                 Not(HasSubstr("normalize("))));
}

TEST_F(InitTableRun, TwoWordsAreZeroAndOne) {
  std::string rows = "a,b,c,d,churn,comment\n";
  for (int i = 0; i < 60; ++i)
    rows += std::to_string(i % 7) + ",1.5,2,3," + (i % 3 == 0 ? "yes" : "no") + ",c" +
            std::to_string(i) + "\n";
  const InitReport report = guess(dense(1), rows);
  EXPECT_THAT(report.open, IsEmpty()) << text();
  EXPECT_THAT(text(),
              AllOf(HasSubstr("as = [ \"classes('no', 'yes')\", \"float32\" ]"),
                    HasSubstr("kind = \"binary_cross_entropy\""), HasSubstr("1 is \"yes\"")));
  EXPECT_THAT(report.text, HasSubstr("nothing reads the columns comment"));
  EXPECT_EQ(train({"steps=2"}).steps, 2u);
}

// One label in a hundred is neither of the two words: the error says where it is, so that it can be
// corrected.
TEST_F(InitTableRun, AWordThatIsNoLabelIsNamed) {
  std::string rows = "a,b,c,d,churned\n";
  for (int i = 0; i < 120; ++i)
    rows += std::to_string(i % 7) + ".5,1,2," + std::to_string(i % 3) + "," +
            (i == 40      ? "maybe"
             : i % 2 == 0 ? "yes"
                          : "no") +
            "\n";
  const InitReport report = guess(dense(1), rows);
  EXPECT_THAT(report.text, AllOf(HasSubstr("\"churned\" holds 3 different texts"),
                                 HasSubstr("the text \"maybe\" in line 42 of rows.csv")));
}

TEST_F(InitTableRun, AucIsMeasuredWhereBothClassesAreHeldOut) {
  std::string few = "a,b,c,d,label\n", many = few;
  for (int i = 0; i < 400; ++i) {
    const std::string row = std::to_string(i % 7) + ",1.5,2,3," + std::to_string(i % 2) + "\n";
    many += row;
    if (i < 60) few += row;
  }
  guess(dense(1), few);
  EXPECT_THAT(text(), HasSubstr("metrics = [ \"accuracy\", \"log_loss\" ]"));
  std::filesystem::remove(folder_ / "train.toml");
  std::filesystem::remove(folder_ / "policy.toml");
  guess(dense(1), many);
  EXPECT_THAT(text(), HasSubstr("metrics = [ \"accuracy\", \"auc\", \"log_loss\" ]"));
  EXPECT_GE(train({"epochs=1"}).evaluation.at("auc"), 0);
}

}  // namespace
}  // namespace tandem::api
