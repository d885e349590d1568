// Evaluation: every sample once, the best checkpoint kept, patience.
#include "engine/train/evaluation/evaluation.h"

#include <filesystem>

#include "engine/graph/error.h"
#include "engine/losses/loss_weights.h"
#include "engine/metrics/metric.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "tests/harness/operator_case.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::terms;
using testing::Trained;

using EvaluationTest = testing::TrainingRun;

/// The loss over all samples of a source at once, with the parameters of `states`.
double whole_loss(const OperatorSet& operators, const RunConfig& config, const DataSource& source,
                  const StateStore& states, Metric& accuracy) {
  const std::int64_t samples = source.samples();
  TrainingRequest request;
  request.config = &config;
  request.fields = {{"labels", {DType::int64, {samples}}}};
  request.samples = {samples, samples};
  const Graph graph =
      build_evaluation_graph(operators, testing::small_network(operators, samples), request);
  std::vector<std::pair<std::string, HostTensor>> feeds = testing::states_of(states);
  std::vector<std::int64_t> order(static_cast<std::size_t>(samples));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  for (int field = 0; field < 2; ++field) {
    TensorType type = source.fields()[field].sample;
    type.shape.insert(type.shape.begin(), samples);
    HostTensor tensor(type);
    source.fill(field, order, nullptr, tensor.data());
    feeds.emplace_back(source.fields()[field].name, tensor);
  }
  const auto found = testing::evaluate(
      graph, feeds, {graph.find_output("loss")->value, graph.find_output("logits")->value});
  accuracy.add({found[1], feeds.back().second, class_options(config.loss.terms[0]).ignore_index});
  return found[0].as<float>()[0];
}

TEST_F(EvaluationTest, EvaluationCoversEachSampleOnce) {
  for (const std::int64_t samples : {1, 7, 8, 16, 19}) {
    for (const std::string& options :
         {std::string(), std::string(", reduction=\"sum\""),
          std::string(", ignore_index=-1, class_weights=[0.5, 2.0, 1.0]")}) {
      const bool holes = options.find("ignore") != std::string::npos;
      train_ = testing::small_data(22, 3, holes);
      eval_ = testing::small_data(samples, 9, holes);
      const std::vector<std::string> keys{
          terms(options), "steps=2", "eval.metrics=[\"accuracy\", \"loss\"]", "optimizer.lr=0.01"};
      const Trained run = this->run(keys);
      ASSERT_EQ(run.evaluations.size(), 1u);
      const std::unique_ptr<Metric> accuracy =
          find_metric("accuracy")->make(metric_of("accuracy"), class_scores);
      const double loss = whole_loss(engine_.operators, testing::small_config(folder_.path(), keys),
                                     *eval_, run.training->states(), *accuracy);
      EXPECT_NEAR(Trained::value(run.evaluations[0], "loss"), loss, 1e-6 * loss)
          << samples << options;
      EXPECT_DOUBLE_EQ(Trained::value(run.evaluations[0], "accuracy"), accuracy->value())
          << samples << options;
    }
  }
}

TEST_F(EvaluationTest, MetricsThatCannotBeComputedAreErrors) {
  eval_ = testing::small_data(7, 9);
  EXPECT_THAT(testing::error_text([&] { run({"eval.metrics=[\"mse\"]"}); }),
              HasSubstr("a term of kind mse"));
  EXPECT_THAT(testing::error_text([&] { run({"eval.metrics=[\"auc\"]"}); }),
              HasSubstr("a term of kind binary_cross_entropy"));
  EXPECT_THAT(testing::error_text([&] {
                run({"eval.metrics=[\"calibration\"]", "eval.best=\"calibration\""});
              }),
              HasSubstr("best near 1"));
}

TEST_F(EvaluationTest, LabelsThatHaveNoSuchMetricAreRefusedBeforeTheFirstStep) {
  const std::vector<std::string> keys{
      "loss.terms=[{name=\"loss\", kind=\"binary_cross_entropy\", logits=\"logits\", "
      "labels=\"labels\"}]",
      "eval.metrics=[\"auc\", \"calibration\", \"log_loss\"]"};
  const auto data = [](float label) {
    HostTensor labels(TensorType{DType::float32, {9, 3}});
    labels.as<float>()[26] = label;
    return make_array_source(
        {{"x", HostTensor(TensorType{DType::float32, {9, 6}})}, {"labels", labels}});
  };
  train_ = data(1);
  eval_ = data(0);
  EXPECT_THAT(testing::error_text([&] { run(keys); }),
              AllOf(HasSubstr("eval.metrics: the held-out data has no auc: expected labels of both "
                              "classes, got no label is positive (field labels)"),
                    HasSubstr("has no calibration: expected positive labels")));
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
  eval_ = data(1);
  EXPECT_THAT(testing::error_text([&] { run(keys); }), "no error");
}

/// A file that cannot be read any more.
class UnreadableSource final : public DataSource {
 public:
  const std::vector<DataField>& fields() const override { return source_->fields(); }
  std::int64_t samples() const override { return source_->samples(); }
  void fill(int, std::span<const std::int64_t>, const Augmentation*, void*) const override {
    throw Error(ErrorKind::data, Diagnostic{.message = "cannot be read"});
  }
  std::string describe(int, std::int64_t) const override { return ""; }
  void check_range(int, std::int64_t, const std::int64_t*) const override {}
  void check_numbers(int, double, double, const std::string&) const override {}

 private:
  std::shared_ptr<const DataSource> source_ = testing::small_data(7, 9);
};

TEST_F(EvaluationTest, WhatWasTrainedStaysWhereTheEvaluationFails) {
  const std::string path = folder_ / "run";
  for (const std::string every : {"\"2 steps\"", "\"5 steps\""}) {
    fs::remove_all(path);
    const std::vector<std::string> keys{"run_dir=\"" + path + "\"", "steps=5",
                                        "eval.every=" + every};
    eval_ = std::make_shared<UnreadableSource>();
    EXPECT_THAT(testing::error_text([&] { run(keys); }), HasSubstr("cannot be read"));
    EXPECT_FALSE(fs::exists(path + "/summary.json"));
    EXPECT_THAT(list_checkpoints(path + "/checkpoints"),
                ElementsAre(checkpoint_name(every == "\"2 steps\"" ? 2 : 5)));
    eval_ = testing::small_data(7, 9);
    const Trained resumed = run(keys, 0, path);
    EXPECT_EQ(resumed.result.steps, 5u);
    EXPECT_EQ(Trained::value(resumed.evaluations.back(), "loss"),
              Trained::value(run({"steps=5"}).evaluations.back(), "loss"));
    EXPECT_TRUE(fs::exists(path + "/summary.json"));
  }
}

TEST_F(EvaluationTest, ALastEvaluationThatIsNotFiniteLeavesAllCheckpoints) {
  HostTensor x(TensorType{DType::float32, {3, 6}});
  x.as<float>()[7] = std::numeric_limits<float>::infinity();
  const auto data = [](const HostTensor& x) {
    return make_array_source({{"x", x}, {"labels", HostTensor(TensorType{DType::int64, {3}})}});
  };
  const std::string path = folder_ / "run";
  const std::vector<std::string> keys{"run_dir=\"" + path + "\"", "steps=5",
                                      "checkpoint.every=\"2 steps\"", "checkpoint.keep=1"};
  eval_ = data(x);
  for (const std::string& resume : {std::string(), path}) {
    EXPECT_THAT(testing::error_text([&] { run(keys, 0, resume); }),
                HasSubstr("the evaluation's loss is not finite at step 5"));
    EXPECT_THAT(list_checkpoints(path + "/checkpoints"),
                ElementsAre(checkpoint_name(4), checkpoint_name(5)));
  }
  eval_ = data(HostTensor(x.type()));
  EXPECT_EQ(run(keys, 0, path).result.steps, 5u);
  EXPECT_EQ(testing::metrics_of(path).back()["phase"], "eval");
  EXPECT_EQ(testing::metrics_of(path).size(), 6u);  // five steps and one evaluation
}

TEST_F(EvaluationTest, TheBestCheckpointIsKept) {
  eval_ = testing::small_data(9, 9);
  // A rate that only hurts: the first evaluation is the best one.
  const Trained run =
      this->run({"steps=6", "optimizer.lr=3.0", "eval.every=\"1 steps\"", "eval.metrics=[\"loss\"]",
                 "eval.best=\"loss\"", "checkpoint.every=\"1 steps\"", "checkpoint.keep=1"});
  double best = 1e30;
  std::uint64_t best_step = 0;
  for (const TrainingProgress& p : run.evaluations) {
    if (Trained::value(p, "loss") < best) {
      best = Trained::value(p, "loss");
      best_step = p.step;
    }
  }
  const std::string checkpoints = run.result.run_dir + "/checkpoints";
  EXPECT_THAT(testing::lines_of(checkpoints + "/best"), ElementsAre(checkpoint_name(best_step)));
  EXPECT_TRUE(fs::exists(checkpoints + "/" + checkpoint_name(best_step)));
  EXPECT_TRUE(fs::exists(checkpoints + "/" + checkpoint_name(6)));
  EXPECT_LE(list_checkpoints(checkpoints).size(), 2u);
}

TEST_F(EvaluationTest, ACheckpointOfTheLastStepKnowsTheBestOfItsEvaluation) {
  eval_ = testing::small_data(9, 9);
  const std::vector<std::string> keys{"optimizer.lr=0.01", "eval.every=\"4 steps\"",
                                      "eval.metrics=[\"loss\"]", "eval.best=\"loss\"",
                                      "checkpoint.every=\"3 steps\""};
  std::vector<std::string> six = keys, seven = keys;
  six.push_back("steps=6");
  seven.push_back("steps=7");
  const Trained run = this->run(six);
  const std::string checkpoints = run.result.run_dir + "/checkpoints";
  const CheckpointContent last = read_checkpoint(checkpoints + "/" + checkpoint_name(6));
  ASSERT_EQ(run.evaluations.back().step, 6u);
  ASSERT_TRUE(last.position.best);
  EXPECT_EQ(last.position.best_step, 6u);
  EXPECT_EQ(*last.position.best, Trained::value(run.evaluations.back(), "loss"));
  this->run(seven, 0, run.result.run_dir);
  EXPECT_TRUE(fs::exists(checkpoints + "/best"));
}

TEST_F(EvaluationTest, PatienceEndsTheRun) {
  eval_ = testing::small_data(9, 9);
  const Trained run =
      this->run({"steps=100", "optimizer.lr=0.0", "eval.every=\"2 steps\"",
                 "eval.metrics=[\"loss\"]", "eval.best=\"loss\"", "eval.patience=3"});
  EXPECT_EQ(run.result.steps, 8u);  // the first is the best, then three that are not better
  EXPECT_EQ(run.evaluations.size(), 4u);
  EXPECT_THAT(run.messages, ::testing::Contains(HasSubstr("stopped early")));
  EXPECT_TRUE(fs::exists(run.result.run_dir + "/summary.json"));
}

}  // namespace
}  // namespace tandem
