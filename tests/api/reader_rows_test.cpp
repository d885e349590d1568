// parameters.shape with rows = "vocabulary(…)" for tables that only have a name by their reader:
// trained, evaluated, exported, predicted with and resumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/formats/files.h"
#include "tandem/export.h"
#include "tandem/tandem.h"
#include "tests/api/error_of.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::error_of;
using tandem::testing::SmallModel;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReaderRows : public ::testing::Test {
 protected:
  /// Tables onnx::Gather_1 and onnx::Gather_2 with one row, which the modules user and item look
  /// up. Nine users and four items occur.
  void SetUp() override {
    write_file(folder_ / "net.onnx",
               SmallModel()
                   .input("users", {4}, 7)
                   .input("items", {4}, 7)
                   .weight("onnx::Gather_1", {1, 2}, 0.1f)
                   .weight("onnx::Gather_2", {1, 2}, 0.1f)
                   .node("Gather", "/user/Gather", {"onnx::Gather_1", "users"}, "user_rows")
                   .node("Gather", "/item/Gather", {"onnx::Gather_2", "items"}, "item_rows")
                   .node("Add", "/Add", {"user_rows", "item_rows"}, "logits")
                   .output("logits", {4, 2})
                   .bytes());
    std::string text = "user,item,label\n";
    for (int i = 0; i < 36; ++i)
      text += "u" + std::to_string(i % 9) + ",i" + std::to_string(i % 4) + "," +
              std::to_string(i % 2) + "\n";
    write_file(folder_ / "rows.csv", text);
  }
  void put_config(const std::string& rules, const std::string& fields) {
    write_file(folder_ / "train.toml", R"toml(model = "net.onnx"
batch_size = 4
epochs = 1
loss = { terms = [ { kind = "softmax_cross_entropy", logits = "logits", labels = "label" } ] }
optimizer = { kind = "adam", lr = 0.1 }
[parameters]
shape = [ )toml" + rules + R"toml( ]
init = [ { at = "onnx::Gather_*", kind = "normal", std = 0.3 } ]
[data]
kind = "csv"
train = { files = [ "rows.csv" ] }
eval = { files = [ "rows.csv" ] }
[data.fields]
label = { from = "label", as = [ "int64" ] }
)toml" + fields);
  }
  TrainResult train(bool resume = false, const std::vector<std::string>& keys = {}) {
    TrainOptions options;
    options.run_dir = folder_ / "run";
    options.resume = resume;
    options.accept_changes = resume;
    options.overrides = keys;
    return Trainer(folder_ / "train.toml", options).run();
  }
  std::string predicted(const std::string& model) {
    PredictOptions options;
    options.data = {folder_ / "rows.csv"};
    options.to = folder_ / "p.csv";
    options.as = "values";
    if (model.ends_with(".onnx")) options.config = folder_ / "train.toml";
    predict_run(model, options);
    return read_file(folder_ / "p.csv");
  }
  /// Uses a run in every way; each table has a row for each word and one for all others.
  void expect_use() {
    const TrainResult trained = train();
    EXPECT_EQ(trained.steps, 9u);
    EXPECT_THAT(evaluate_run(folder_ / "run", {}).problems, IsEmpty());
    export_run(folder_ / "run", folder_ / "trained.onnx", ExportSettings{});
    EXPECT_EQ(predicted(folder_ / "run"), predicted(folder_ / "trained.onnx"));
    std::filesystem::remove(folder_ / "run/summary.json");
    EXPECT_EQ(train(true, {"epochs=2"}).steps, 18u);
  }
  tandem::testing::TemporaryFolder folder_;
};

constexpr const char* own_vocabularies =
    "users = { from = \"user\", as = [ \"vocabulary\" ] }\n"
    "items = { from = \"item\", as = [ \"vocabulary\" ] }\n";

TEST_F(ReaderRows, OfOneTableEach) {
  put_config(
      "{ at = \"user:weight\", rows = \"vocabulary(users)\" }, "
      "{ at = \"item\", rows = \"vocabulary(items)\" }",
      own_vocabularies);
  expect_use();
}

// The later rule names a table by its reader and overrides an earlier rule that covers both by
// their names in the file.
TEST_F(ReaderRows, ThatTakeATableFromAnEarlierRule) {
  put_config(
      "{ at = \"onnx::Gather_*\", rows = \"vocabulary(items)\" }, "
      "{ at = \"user:weight\", rows = \"vocabulary(users)\" }",
      own_vocabularies);
  expect_use();
}

TEST_F(ReaderRows, OfAVocabularyThatBothShare) {
  put_config("{ at = \"{user,item}:weight\", rows = \"vocabulary(users)\" }",
             "users = { from = \"user\", as = [ \"vocabulary(name='both')\" ] }\n"
             "items = { from = \"item\", as = [ \"vocabulary(name='both')\" ] }\n");
  expect_use();
}

// Ids are counted from 1 in each column: there are fewer rows than words.
TEST_F(ReaderRows, OfIdsThatColumnsCountForThemselves) {
  write_file(folder_ / "net.onnx",
             SmallModel()
                 .input("ids", {4, 2}, 7)
                 .weight("onnx::Gather_1", {1, 2}, 0.1f)
                 .weight("fc.weight", {4, 2}, 0.1f)
                 .node("Gather", "/embed/Gather", {"onnx::Gather_1", "ids"}, "rows")
                 .node("Flatten", "/Flatten", {"rows"}, "row")
                 .node("MatMul", "/fc/MatMul", {"row", "fc.weight"}, "logits")
                 .output("logits", {4, 2})
                 .bytes());
  put_config("{ at = \"embed:weight\", rows = \"vocabulary(ids)\" }",
             "ids = { from = [ \"user\", \"item\" ], as = [ \"vocabulary(by='table')\" ] }\n");
  expect_use();
}

TEST_F(ReaderRows, OfAFieldWhoseNameIsNoFilesName) {
  put_config(
      "{ at = \"user:weight\", rows = \"vocabulary(users)\" }, "
      "{ at = \"item:weight\", rows = \"vocabulary(items)\" }",
      "users = { from = \"user\", as = [ \"vocabulary(name='the user')\" ] }\n"
      "items = { from = \"item\", as = [ \"vocabulary(name='the_user')\" ] }\n");
  expect_use();
}

TEST_F(ReaderRows, WithoutTheVocabularyAreRefused) {
  put_config(
      "{ at = \"user:weight\", rows = \"vocabulary(users)\" }, "
      "{ at = \"item:weight\", rows = \"vocabulary(items)\" }",
      own_vocabularies);
  train();
  std::filesystem::remove(folder_ / "run/vocabulary.users.tsv");
  EXPECT_THAT(error_of([&] { evaluate_run(folder_ / "run", {}); }),
              HasSubstr("take a whole copy of the run directory"));
}

}  // namespace
}  // namespace tandem::api
