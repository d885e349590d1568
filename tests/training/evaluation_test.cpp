// Evaluation: every sample once, the best checkpoint kept, patience.
#include "engine/training/evaluation.h"

#include <filesystem>

#include "engine/training/checkpoint.h"
#include "engine/training/metrics.h"
#include "tests/harness/operator_case.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::terms;
using testing::Trained;

using EvaluationTest = testing::TrainingRun;

/// The loss over all samples of a source at once, with the parameters of `states`.
double whole_loss(const OperatorSet& operators, const RunConfig& config, const DataSource& source,
                  const StateStore& states, Accuracy& accuracy) {
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
  accuracy.add(found[1], feeds.back().second, config.loss.terms[0].ignore_index);
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
      Accuracy accuracy;
      const double loss = whole_loss(engine_.operators, testing::small_config(folder_.path(), keys),
                                     *eval_, run.training->states(), accuracy);
      EXPECT_NEAR(Trained::value(run.evaluations[0], "loss"), loss, 1e-6 * loss)
          << samples << options;
      EXPECT_DOUBLE_EQ(Trained::value(run.evaluations[0], "accuracy"), accuracy.value())
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
