// Trained models and data that are not finite: reports of eval, predict and data check.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "api/program/data.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/api/trained_runs.h"
#include "tests/harness/program.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

class ApiDivergenceTest : public ::testing::Test {
 protected:
  ApiDivergenceTest() {
    write_file(folder_ / "train.toml", "model = \"" + digits + R"toml(model.onnx"
batch_size = 32
steps = 3
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "sgd"
lr   = 1e-3
[data]
kind = "npz"
[data.train]
files = [ ")toml" + digits + R"toml(digits_train.npz" ]
[data.eval]
files = [ ")toml" + digits + R"toml(digits_test.npz" ]
[data.fields]
image  = { from = "images", as = [ "float32", "scale(1/16)" ] }
labels = "labels"
[eval]
metrics = [ "accuracy" ]
)toml");
    testing::train(folder_);
  }

  /// Held-out images in which sample `sample` has this value.
  std::string images_with(float value, std::int64_t sample) const {
    std::vector<NamedTensor> arrays = read_npz(digits + "digits_test.npz");
    for (NamedTensor& array : arrays) {
      if (array.name != "images") continue;
      array.tensor = array.tensor.converted(DType::float32).clone();
      array.tensor.as<float>()[static_cast<std::size_t>(sample) * 64 + 5] = value;
    }
    write_npz(folder_ / "bad.npz", arrays);
    return folder_ / "bad.npz";
  }

  /// Writes this value into one weight of the run's checkpoint; returns the weight's name.
  std::string spoil(float value) const {
    const std::string folder = run_ + "/checkpoints", path = folder + "/step-00000003";
    CheckpointContent content = read_checkpoint(path);
    NamedTensor& weight = content.model.front();
    weight.tensor = weight.tensor.clone();
    weight.tensor.as<float>()[1] = value;
    fs::remove_all(path);
    write_checkpoint(folder, content);
    return weight.name;
  }

  TemporaryFolder folder_;
  const std::string run_ = folder_ / "run";
};

TEST_F(ApiDivergenceTest, AModelOfNumbersHasNoProblems) {
  const EvaluationReport report = evaluate_run(run_, {});
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_FALSE(Json::parse(report.json).contains("errors"));
  EXPECT_EQ(run_program("eval " + run_ + " --json 2>/dev/null").code, 0);
}

TEST_F(ApiDivergenceTest, AWeightThatIsNaNIsRefusedByName) {
  const std::string weight = spoil(std::nanf(""));
  const std::string named = "step-00000003: " + weight +
                            ": holds a number that no run has written: expected numbers, got nan";
  EXPECT_THAT(error_of([&] { evaluate_run(run_, {}); }, ErrorKind::data), HasSubstr(named));
  PredictOptions options;
  options.data = {digits + "digits_test.npz"};
  options.to = folder_ / "predicted.tsv";
  EXPECT_THAT(error_of([&] { predict_run(run_, options); }, ErrorKind::data), HasSubstr(named));
  EXPECT_FALSE(fs::exists(options.to));
  for (const std::string model : {"out.onnx", "out.npz", "out.safetensors"}) {
    EXPECT_THAT(error_of([&] { export_run(run_, folder_ / model); }, ErrorKind::data),
                HasSubstr(named));
    EXPECT_FALSE(fs::exists(folder_ / model));
  }
  EXPECT_NE(run_program("export " + run_ + " --to " + (folder_ / "out.onnx") + " 2>/dev/null").code,
            0);
}

TEST_F(ApiDivergenceTest, AWeightThatIsInfiniteIsNamedByEvalAndPredict) {
  const std::string weight = spoil(std::numeric_limits<float>::infinity());
  const Ended ended = run_program("eval " + run_ + " --json 2>/dev/null");
  EXPECT_EQ(ended.code, 5);
  const Json json = Json::parse(ended.text);
  EXPECT_TRUE(json["metrics"].contains("accuracy"));
  bool named = false;
  for (const Json& error : json["errors"]) named |= error["path"] == weight;
  EXPECT_TRUE(named) << ended.text;
  const Ended text = run_program("eval " + run_ + " 2>&1");
  EXPECT_EQ(text.code, 5);
  EXPECT_THAT(text.text, AllOf(HasSubstr("accuracy"),
                               HasSubstr(weight + ": a parameter or running statistic is not "
                                                  "finite: expected numbers, got inf"),
                               HasSubstr("--checkpoint STEP")));

  PredictOptions options;
  options.data = {digits + "digits_test.npz"};
  options.to = folder_ / "predicted.tsv";
  EXPECT_THAT(error_of([&] { predict_run(run_, options); }, ErrorKind::diverged),
              HasSubstr(weight + ": a parameter or running statistic is not finite"));
  EXPECT_FALSE(fs::exists(options.to));

  const std::string model = folder_ / "out.onnx";
  export_run(run_, model);
  EXPECT_EQ(
      run_program("eval " + model + " --config " + (folder_ / "train.toml") + " 2>/dev/null").code,
      5);
}

TEST_F(ApiDivergenceTest, ARowThatMakesTheLossNaNIsNamedByEval) {
  TrainedOptions options;
  options.data = {images_with(std::nanf(""), 6)};
  const EvaluationReport report = evaluate_run(run_, options);
  EXPECT_EQ(Json::parse(report.json)["metrics"]["loss"], "nan");
  EXPECT_THAT(report.text, HasSubstr("loss        nan\n"));
  ASSERT_EQ(report.problems.size(), 2u);
  EXPECT_EQ(report.problems[0].message, "the loss is not finite");
  EXPECT_THAT(to_string(report.problems[1]),
              HasSubstr("bad.npz:7: data.fields.image: nan in the data"));
  EXPECT_EQ(run_program("eval " + run_ + " --data " + options.data[0] + " 2>/dev/null").code, 5);

  PredictOptions predict;
  predict.data = options.data;
  predict.to = folder_ / "predicted.tsv";
  predict.as = "values";
  predict_run(run_, predict);  // its line shows it
  EXPECT_THAT(lines_of(read_file(predict.to))[6], HasSubstr("nan"));
}

TEST_F(ApiDivergenceTest, NaNInTheDataIsNamedBeforeTrainingAndByDataCheck) {
  const std::string bad = images_with(std::nanf(""), 6);
  const std::string key = "data.train.files=[\"" + bad + "\"]";
  TrainOptions options;
  options.run_dir = folder_ / "other";
  options.overrides = {key};
  options.dry_run = true;
  const std::string named = "bad.npz:7: data.fields.image: nan in the data";
  EXPECT_THAT(error_of([&] { Trainer(folder_ / "train.toml", options).run(); }, ErrorKind::data),
              HasSubstr(named));
  DataOptions check;
  check.overrides = {key};
  const DataReport found = data_check(folder_ / "train.toml", check);
  EXPECT_FALSE(found.bad);
  EXPECT_THAT(found.report.text, HasSubstr(named));
  EXPECT_EQ(Json::parse(found.report.json)["problems"][0]["line"], 7);
}

}  // namespace
}  // namespace tandem::api
