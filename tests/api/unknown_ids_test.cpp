// Ids above the rows of their table, which out_of_range = "zero" allows: counted and reported in
// training, data check, eval and predict.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::SmallModel;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

class UnknownIds : public ::testing::Test {
 protected:
  /// Two ids of a sample look up a table of 5 rows.
  void put_model() {
    write_file(folder_ / "net.onnx", SmallModel()
                                         .input("ids", {4, 2}, 7)
                                         .weight("table", {5, 2}, 0.1f)
                                         .weight("fc", {4, 2}, 0.1f)
                                         .node("Gather", "lookup", {"table", "ids"}, "rows")
                                         .node("Flatten", "flat", {"rows"}, "row")
                                         .node("MatMul", "fc", {"row", "fc"}, "logits")
                                         .output("logits", {4, 2})
                                         .bytes());
  }
  void put_config(const std::string& data) {
    put_model();
    write_file(folder_ / "train.toml", R"toml(model = "net.onnx"
batch_size = 4
epochs = 1
loss = { terms = [ { kind = "softmax_cross_entropy", logits = "logits", labels = "label" } ] }
optimizer = { kind = "sgd", lr = 0.1 }
[data]
)toml" + data);
  }
  void put_table_config() {
    put_config(R"toml(kind = "csv"
train = { files = [ "train.csv" ] }
eval = { files = [ "eval.csv" ] }
[data.fields]
ids = { from = [ "user", "item" ], as = [ "int64" ], out_of_range = "zero" }
label = { from = "label", as = [ "int64" ] }
)toml");
    write_file(folder_ / "train.csv", rows(16, 0));
    write_file(folder_ / "eval.csv", rows(16, 4));
  }
  /// Users from 0 to 4, and items too, except for the first `above`, which cycle through 7, 8, 9.
  static std::string rows(int count, int above, bool with_labels = true) {
    std::string text = with_labels ? "user,item,label\n" : "user,item\n";
    for (int i = 0; i < count; ++i) {
      text += std::to_string(i % 5) + "," + std::to_string(i < above ? 7 + i % 3 : i * 3 % 5);
      text += with_labels ? "," + std::to_string(i % 2) + "\n" : "\n";
    }
    return text;
  }
  TrainResult train() {
    TrainOptions options;
    options.run_dir = folder_ / "run";
    options.on_message = [this](const std::string& line) { said_.push_back(line); };
    return Trainer(folder_ / "train.toml", options).run();
  }

  tandem::testing::TemporaryFolder folder_;
  std::vector<std::string> said_;
};

const auto four_of_16 = AllOf(HasSubstr("4 of 16 ids of `item` (25 %, field ids: 7, 8, 9)"),
                              HasSubstr("the table, which has 5, and look up zeros"));

TEST_F(UnknownIds, OfAColumnAreTold) {
  put_table_config();
  const TrainResult result = train();
  EXPECT_THAT(result.warnings, ElementsAre(AllOf(HasSubstr("held-out data: "), four_of_16)));
  EXPECT_THAT(said_, Contains(AllOf(HasSubstr("warning"), four_of_16)));
  const EvaluationReport report = evaluate_run(folder_ / "run", {});
  EXPECT_THAT(report.warnings, ElementsAre(four_of_16));
  EXPECT_THAT(Json::parse(report.json)["warnings"].dump(), HasSubstr("4 of 16 ids"));
  TrainedOptions known;
  known.data = {folder_ / "train.csv"};
  EXPECT_THAT(evaluate_run(folder_ / "run", known).warnings, IsEmpty());
  const DataReport check = data_check(folder_ / "train.toml");
  EXPECT_THAT(check.report.text, AllOf(HasSubstr("0 to 9 in the column `item`"),
                                       HasSubstr("`tandem train --dry-run` counts them"),
                                       Not(HasSubstr("column `user`"))));
}

// A stream of rows, one batch at a time.
TEST_F(UnknownIds, OfRowsToPredictAreTold) {
  put_table_config();
  train();
  write_file(folder_ / "new.csv", rows(50, 12, false));
  PredictOptions options;
  options.data = {folder_ / "new.csv"};
  options.to = folder_ / "p.csv";
  const Report report = predict_run(folder_ / "run", options);
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("12 of 50 ids of `item` (24 %")));
  EXPECT_THAT(Json::parse(report.json)["warnings"].dump(), HasSubstr("12 of 50 ids"));
}

TEST_F(UnknownIds, OfFewRowsAreNot) {
  put_table_config();
  write_file(folder_ / "eval.csv", rows(100, 3));
  EXPECT_THAT(train().warnings, IsEmpty());
  write_file(folder_ / "eval.csv", rows(100, 4));
  std::filesystem::remove_all(folder_ / "run");
  EXPECT_THAT(train().warnings, ElementsAre(HasSubstr("4 of 100 ids")));
}

// -1 after a short list means that there is no id.
TEST_F(UnknownIds, AreNoPadding) {
  put_config(R"toml(kind = "npz"
train = { files = [ "train.npz" ] }
[data.fields]
ids = { from = "list", out_of_range = "zero" }
label = "label"
)toml");
  std::vector<std::int64_t> ids, labels;
  const auto write = [&](std::int64_t samples) {
    write_npz(folder_ / "train.npz",
              {{"list", HostTensor::from<std::int64_t>({samples, 2}, ids)},
               {"label", HostTensor::from<std::int64_t>({samples}, labels)}});
  };
  for (int i = 0; i < 16; ++i) {
    ids.insert(ids.end(), {i % 5, -1});
    labels.push_back(i % 2);
  }
  write(16);
  EXPECT_THAT(train().warnings, IsEmpty());
  std::filesystem::remove_all(folder_ / "run");
  ids.insert(ids.end(), {9, 1, 8, -1});
  labels.insert(labels.end(), {0, 1});
  write(18);
  EXPECT_THAT(
      train().warnings,
      ElementsAre(HasSubstr("training data: 2 of 19 ids of `list` (10.5 %, field ids: 9, 8)")));
}

TEST_F(UnknownIds, OfArraysAreTold) {
  put_config(R"toml(kind = "npz"
train = { files = [ "train.npz" ] }
[data.fields]
ids = { from = "places", out_of_range = "zero" }
label = "label"
)toml");
  std::vector<std::int64_t> ids, labels;
  for (int i = 0; i < 16; ++i) {
    ids.push_back(i % 5);
    ids.push_back(i < 2 ? 100 : 1);
    labels.push_back(i % 2);
  }
  write_npz(folder_ / "train.npz", {{"places", HostTensor::from<std::int64_t>({16, 2}, ids)},
                                    {"label", HostTensor::from<std::int64_t>({16}, labels)}});
  const auto told = HasSubstr("2 of 32 ids of `places` (6.25 %, field ids: 100)");
  EXPECT_THAT(train().warnings, ElementsAre(told));
  const DataReport check = data_check(folder_ / "train.toml");
  EXPECT_THAT(Json::parse(check.report.json)["warnings"].get<std::vector<std::string>>(),
              ElementsAre(told));
}

}  // namespace
}  // namespace tandem::api
