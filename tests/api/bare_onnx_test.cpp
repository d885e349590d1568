// eval and predict with only an ONNX file, predictions as JSON lines, and ids of their rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/program/init.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/api/trained_runs.h"
#include "tests/harness/folders.h"

namespace tandem::api {
namespace {

using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::string digits_test = source_folder() + "/models/digits/digits_test.npz";

Json metrics_of(const std::string& model, const TrainedOptions& options) {
  return Json::parse(evaluate_run(model, options).json);
}

TEST(BareOnnx, IsEvaluatedAsInitWouldHaveIt) {
  const TemporaryFolder folder;
  init(digits_model, {.data = digits_test, .to = folder.path()});
  TrainedOptions configured;
  configured.config = folder / "train.toml";
  configured.data = {digits_test};
  TrainedOptions bare;
  bare.data = {digits_test};
  const Json expected = metrics_of(digits_model, configured), got = metrics_of(digits_model, bare);
  EXPECT_EQ(got["metrics"], expected["metrics"]);
  EXPECT_EQ(got["samples"], expected["samples"]) << "all of the data";
  EXPECT_TRUE(got["metrics"].contains("loss"));
}

TEST(BareOnnx, IsRefusedWithoutData) {
  EXPECT_THAT(error_of([] { evaluate_run(digits_model, {}); }),
              AllOf(HasSubstr("says nothing about its data"), HasSubstr("--data PATH")));
  TrainedOptions several;
  several.data = {digits_test, digits_test};
  EXPECT_THAT(error_of([&] { evaluate_run(digits_model, several); }),
              HasSubstr("one file or folder"));
  several.data = {"-"};
  EXPECT_THAT(error_of([&] { evaluate_run(digits_model, several); }),
              HasSubstr("one file or folder"));
}

TEST(BareOnnx, PredictsWithoutLabels) {
  const TemporaryFolder folder;
  const std::vector<NamedTensor> arrays = read_npz(digits_test);
  std::vector<NamedTensor> images;
  for (const NamedTensor& array : arrays) {
    if (array.name == "images") images.push_back(array);
  }
  ASSERT_EQ(images.size(), 1u);
  write_npz(folder / "images.npz", images);
  PredictOptions options;
  options.data = {folder / "images.npz"};
  options.to = folder / "values.npz";
  options.as = "values";
  options.outputs = {"logits"};
  predict_run(digits_model, options);
  EXPECT_EQ(read_npz(options.to)[0].tensor.shape()[0], images[0].tensor.shape()[0]);
}

/// A run whose images are divided by 7, which cannot be guessed, and its exported file.
class RecordedFields : public ::testing::Test {
 protected:
  RecordedFields() {
    TrainOptions options;
    options.run_dir = run_;
    options.overrides = {"steps=3", "data.fields.image.as=[\"float32\", \"scale(1/7)\"]"};
    Trainer(digits + "train.toml", options).run();
    export_run(run_, exported_);
  }
  std::string predicted(const std::string& what, PredictOptions options = {}) {
    options.data = {digits_test};
    options.as = "values";
    options.to = folder_ / "predicted.tsv";
    predict_run(what, options);
    return read_file(options.to);
  }
  TemporaryFolder folder_;
  const std::string run_ = folder_ / "run", exported_ = folder_ / "trained.onnx";
};

TEST_F(RecordedFields, NewDataIsReadAsTheTrainingRead) {
  EXPECT_EQ(predicted(exported_), predicted(run_));
  TrainedOptions options;
  options.data = {digits_test};
  EXPECT_NEAR(metrics_of(exported_, options)["metrics"]["loss"].get<double>(),
              metrics_of(run_, options)["metrics"]["loss"].get<double>(), 1e-6);
}

TEST_F(RecordedFields, TheCommandLineSaysOtherwise) {
  PredictOptions options;
  options.overrides = {"data.fields.image={ from = \"images\", as = [\"scale(1/16)\"] }"};
  EXPECT_NE(predicted(exported_, options), predicted(run_));
}

class RowIdsTest : public ::testing::Test {
 protected:
  std::string predicted(PredictOptions options, const std::string& name) {
    options.to = folder_ / name;
    predict_run(run_, options);
    return read_file(options.to);
  }
  TemporaryFolder folder_;
  const std::string run_ = folder_ / "run";
};

TEST_F(RowIdsTest, ArraysOfTheDataTellRows) {
  const std::vector<std::int64_t> labels = write_digits(folder_);
  testing::train(folder_);
  PredictOptions options;
  options.data = {"images=" + (folder_ / "test-images"), "labels=" + (folder_ / "test-labels")};
  const std::vector<std::string> plain = lines_of(predicted(options, "plain.tsv"));
  options.ids = {"labels"};
  const std::vector<std::string> lines = lines_of(predicted(options, "ids.tsv"));
  const std::vector<std::string> objects = lines_of(predicted(options, "ids.jsonl"));
  ASSERT_EQ(lines.size(), labels.size());
  ASSERT_EQ(objects.size(), labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    EXPECT_EQ(lines[i], std::to_string(labels[i]) + "\t" + plain[i]);
    const Json row = Json::parse(objects[i]);
    EXPECT_EQ(row["labels"], std::to_string(labels[i]));
    EXPECT_EQ(row.size(), 3u) << "id, class and probability";
    EXPECT_EQ(plain[i].substr(0, plain[i].find('\t')), row["class"].dump());
    EXPECT_EQ(row["probability"].get<double>(),
              std::stod(plain[i].substr(plain[i].find('\t') + 1)));
  }
  options.as = "values";
  const Json row = Json::parse(lines_of(predicted(options, "values.jsonl"))[0]);
  EXPECT_EQ(row["logits"].size(), 10u) << "a list of the entries";
  EXPECT_THAT(error_of([&] { predicted(options, "a.npz"); }), HasSubstr("--id columns"));
  options.ids = {"images"};
  EXPECT_THAT(error_of([&] { predicted(options, "a.tsv"); }), HasSubstr("one number a sample"));
}

TEST_F(RowIdsTest, ColumnsTellRowsAlsoBadOnes) {
  write_clicks(folder_);
  testing::train(folder_);
  std::vector<std::string> rows = lines_of(read_file(folder_ / "eval.tsv"));
  rows.resize(6);
  rows[2] = "broken";
  rows[5] = "last";
  write_file(folder_ / "new.tsv", joined(rows));
  PredictOptions options;
  options.data = {folder_ / "new.tsv"};
  options.overrides = {"data.on_bad=skip"};
  options.ids = {"label", "c1"};
  options.header = true;
  const std::vector<std::string> lines = lines_of(predicted(options, "ids.csv"));
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines[0], "label,c1,probability");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string> cells;
    for (std::size_t at = 0; at <= rows[i].size();) {
      const std::size_t end = std::min(rows[i].find('\t', at), rows[i].size());
      cells.push_back(rows[i].substr(at, end - at));
      at = end + 1;
    }
    const std::string id = cells[0] + "," + (cells.size() > 14 ? cells[14] : "") + ",";
    EXPECT_EQ(lines[i + 1].substr(0, id.size()), id);
    if (cells.size() == 1) {
      EXPECT_EQ(lines[i + 1], id + "nan");
    }
  }
  options.ids = {"lable"};
  EXPECT_THAT(error_of([&] { predicted(options, "a.csv"); }),
              AllOf(HasSubstr("no such column for --id"), HasSubstr("label")));
}

}  // namespace
}  // namespace tandem::api
