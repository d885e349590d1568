// Training over ranks: as one process with all samples, alike on all ranks, written by rank 0.
#include "engine/train/loop/trainer.h"

#include <filesystem>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "tests/training/ranks/rank_runs.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using testing::expect_near;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::metrics_of;
using ::testing::Not;
using testing::RankRuns;
using ::testing::StartsWith;
using testing::terms;
using testing::Trained;

class RankTrainingTest : public testing::RankTraining {
 protected:
  /// 2, 3 and 4 ranks do what one process does: losses, weights, norms, evaluations.
  void expect_as_one_process(const std::vector<std::string>& keys, bool drop_last = false) {
    const auto change = [=](int, RunConfig& config) { config.data->drop_last = drop_last; };
    const RankRuns one = run_ranks({.ranks = 1, .keys = keys, .change = change});
    const std::vector<double> losses = one.first().all("loss");
    ASSERT_GE(losses.size(), 6u);
    for (const int ranks : {2, 3, 4}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks");
      const RankRuns many = run_ranks({.ranks = ranks, .keys = keys, .change = change});
      ASSERT_THAT(many.errors, Each(IsEmpty()));
      const std::vector<double> found = many.first().all("loss");
      ASSERT_EQ(found.size(), losses.size());
      for (std::size_t i = 0; i < losses.size(); ++i)
        EXPECT_NEAR(found[i], losses[i], 1e-5 * (1 + std::abs(losses[i]))) << "step " << i + 1;
      for (const Trained& rank : many.ranks) {
        expect_near(rank.training->states(), one.first().training->states(), 1e-5);
        expect_near(rank.training->states(), many.first().training->states(), 0);  // the same bits
        EXPECT_EQ(rank.result.loss, many.first().result.loss);
      }
      ASSERT_EQ(many.first().evaluations.size(), one.first().evaluations.size());
      for (std::size_t i = 0; i < one.first().evaluations.size(); ++i) {
        for (const auto& [name, value] : one.first().evaluations[i].values)
          EXPECT_NEAR(Trained::value(many.first().evaluations[i], name), value, 1e-5) << name;
      }
    }
  }
};

// 22 samples: steps of 8, 8 and 6, which 3 and 4 ranks do not divide.
TEST_F(RankTrainingTest, AsOneProcess) {
  eval_ = testing::small_data(19, 9);
  expect_as_one_process({"steps=9", "eval.every=\"3 steps\"", "eval.metrics=[\"accuracy\"]"});
}

TEST_F(RankTrainingTest, MicroBatchesAreSharedOut) {
  expect_as_one_process({"steps=8", "micro_batch=4", "optimizer.momentum=0.9"}, true);
}

TEST_F(RankTrainingTest, ClippingSeesTheNormOfAllRanks) {
  expect_as_one_process({"steps=8", "optimizer.kind=adam", "optimizer.clip_norm=0.05"});
}

TEST_F(RankTrainingTest, WeightsOfLabelsCountOverTheWholeStep) {
  train_ = testing::small_data(22, 3, true);
  expect_as_one_process({terms(", ignore_index=-1, class_weights=[0.5, 2.0, 1.0]"), "steps=8"});
}

TEST_F(RankTrainingTest, DropoutHasTheMaskOfOneProcess) {
  forward_ = [](const OperatorSet& operators, std::int64_t batch) {
    GraphBuilder g(operators, testing::small_network(operators, batch));
    const ValueId logits = g.graph().find_output("logits")->value;
    g.graph().outputs.clear();
    g.set_scope({"drop", Phase::forward, {}});
    g.output("logits", g.node("Dropout", {logits}, {{"ratio", 0.4}})[0]);
    return g.finish();
  };
  expect_as_one_process({"steps=8"});
  expect_as_one_process({"steps=8", "micro_batch=4"}, true);
}

TEST_F(RankTrainingTest, RankZeroAloneWritesAndTells) {
  eval_ = testing::small_data(7, 9);
  const RankRuns runs = run_ranks({.ranks = 3, .keys = {"eval.every=\"2 steps\""}});
  ASSERT_THAT(runs.errors, Each(IsEmpty()));
  for (std::size_t rank = 1; rank < 3; ++rank) {
    EXPECT_THAT(runs.ranks[rank].messages, IsEmpty());
    EXPECT_THAT(runs.ranks[rank].steps, IsEmpty());
    EXPECT_EQ(runs.ranks[rank].result.run_dir, runs.first().result.run_dir);
  }
  EXPECT_EQ(metrics_of(runs.first().result.run_dir).size(), 6u + 3u);
  const auto folders = std::distance(fs::directory_iterator(folder_.path() + "/runs"), {});
  EXPECT_EQ(folders, 1);
  EXPECT_FALSE(fs::exists(runs.first().result.run_dir + "/ranks.proof"));
}

// Two are asked to stop, at other times: all save after the same step.
TEST_F(RankTrainingTest, AllStopAtOneStepAndResumeOnAnyNumber) {
  const std::vector<std::string> keys{"steps=12", "optimizer.momentum=0.9"};
  const RankRuns whole = run_ranks({.ranks = 4, .keys = keys});
  for (const int ranks : {4, 1, 3}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks go on");
    const RankRuns begun = run_ranks({.ranks = 4, .keys = keys, .stops = [](int rank, auto step) {
                                        return rank == 2 && step >= 4;
                                      }});
    ASSERT_THAT(begun.errors, Each(IsEmpty()));
    for (const Trained& rank : begun.ranks) {
      EXPECT_TRUE(rank.result.interrupted);
      EXPECT_EQ(rank.result.steps, begun.first().result.steps);
    }
    EXPECT_LT(begun.first().result.steps, 8u);
    const RankRuns rest =
        run_ranks({.ranks = ranks, .keys = keys, .resume = begun.first().result.run_dir});
    ASSERT_THAT(rest.errors, Each(IsEmpty()));
    EXPECT_THAT(rest.first().messages, Contains(StartsWith("resumed at step")));
    EXPECT_EQ(rest.first().result.steps, 12u);
    StateStore &found = rest.first().training->states(), &all = whole.first().training->states();
    expect_near(found, all, ranks == 4 ? 0 : 1e-6);  // on the same number the same bits
    std::vector<std::uint64_t> steps;
    for (const nlohmann::json& line : metrics_of(begun.first().result.run_dir))
      steps.push_back(line["step"]);
    EXPECT_EQ(steps, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  }
}

TEST_F(RankTrainingTest, RanksMustHaveTheSameStates) {
  const RankRuns runs = run_ranks({.ranks = 2, .change = [](int rank, RunConfig& config) {
                                     config.parameters.init.clear();
                                     config.seed = static_cast<std::uint64_t>(rank);
                                     config = testing::small_config(
                                         fs::path(config.file).parent_path().string(),
                                         {"seed=" + std::to_string(rank + 1),
                                          "parameters.init=[{at=\"**\", kind=\"normal\"}]"});
                                   }});
  EXPECT_THAT(runs.errors[0], AllOf(HasSubstr("the states before the first step"),
                                    HasSubstr("rank 0 and rank 1"), HasSubstr("fc1.weight")));
}

TEST_F(RankTrainingTest, TooManyRanksAreRefused) {
  const RankRuns runs = run_ranks({.ranks = 7});
  for (const std::string& error : runs.errors)
    EXPECT_THAT(error, AllOf(HasSubstr("fewer samples than there are ranks"),
                             HasSubstr("data.drop_last = true")));
}

TEST_F(RankTrainingTest, ABadLabelOfOneRankEndsAll) {
  train_ = testing::small_data(22, 3, true);  // labels of -1, which the loss does not ignore
  const RankRuns runs = run_ranks({.ranks = 2});
  EXPECT_THAT(runs.errors, Each(Not(IsEmpty())));
}

TEST_F(RankTrainingTest, TimeIsThatOfRankZero) {
  const RankRuns runs = run_ranks({.ranks = 3, .keys = {"max_time=\"1 s\"", "steps=1000000000"}});
  ASSERT_THAT(runs.errors, Each(IsEmpty()));
  EXPECT_GT(runs.first().result.steps, 1u);
  for (const Trained& rank : runs.ranks) EXPECT_EQ(rank.result.steps, runs.first().result.steps);
}

}  // namespace
}  // namespace tandem
