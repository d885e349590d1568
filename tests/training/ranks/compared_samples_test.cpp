// Whole trainings with a loss that compares the samples of a batch: ranks exchange what they
// compare, and evaluate whole batches.
#include <cmath>

#include "engine/operators/collectives/collective.h"
#include "tests/training/ranks/rank_runs.h"

namespace tandem {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RankRuns;

/// x [batch, 6] -> logits [batch, 3] by the small network, and -> other [batch, 3] by a matrix.
Graph two_towers(const OperatorSet& operators, std::int64_t batch) {
  GraphBuilder g(operators, testing::small_network(operators, batch));
  State matrix;
  matrix.name = "tower.weight";
  matrix.path = "tower:weight";
  matrix.trainable = true;
  matrix.start = HostTensor(TensorType{DType::float32, {6, 3}});
  float i = 0;
  for (float& number : matrix.start.as<float>()) number = 0.5f * std::sin(i += 1.7f);
  const ValueId weight = g.state(std::move(matrix));
  g.set_scope({"tower", Phase::forward, {}});
  g.output("other", g.matmul(g.graph().find_input("x")->value, weight));
  return g.finish();
}

class ComparedSamples : public testing::RankTraining {
 protected:
  ComparedSamples() {
    forward_ = two_towers;
    train_ = testing::small_data(29, 3);  // steps of 8, 8, 8 and 5 samples
    eval_ = testing::small_data(21, 5);   // batches of 8, 8 and 5
  }

  static std::vector<std::string> keys(const std::string& options) {
    return {
        "steps=6", "optimizer.lr=0.05", "eval.every=\"3 steps\"",
        "loss.terms=[{kind=\"info_nce\", anchor=\"logits\", positive=\"other\"" + options + "}]"};
  }

  void expect_as_one_process(const std::string& options, int ranks, const Shardings& shards = {}) {
    SCOPED_TRACE(options + ", " + std::to_string(ranks) + " ranks");
    const RankRuns alone = run_ranks({.ranks = 1, .keys = keys(options)});
    const RankRuns runs = run_ranks({.ranks = ranks, .keys = keys(options), .shards = shards});
    ASSERT_THAT(runs.errors, Each(IsEmpty()));
    const std::vector<double> losses = alone.first().all("loss"), found = runs.first().all("loss");
    ASSERT_EQ(losses.size(), 6u);
    EXPECT_LT(losses[4], losses[0]);
    ASSERT_EQ(found.size(), losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(found[i], losses[i], 1e-5) << i;
    ASSERT_EQ(alone.first().evaluations.size(), 2u);
    ASSERT_EQ(runs.first().evaluations.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      for (const auto& [name, value] : alone.first().evaluations[i].values)
        EXPECT_NEAR(testing::Trained::value(runs.first().evaluations[i], name), value, 1e-5)
            << name;
    }
  }
};

// Shares of 3, 3 and 2 samples among three ranks; four ranks have fewer batches to evaluate.
TEST_F(ComparedSamples, RanksTrainAsOneProcess) {
  expect_as_one_process(", temperature=0.5", 2);
  expect_as_one_process(", temperature=0.5, symmetric=true", 3);
  expect_as_one_process(", similarity=\"dot\", temperature=1.0, reduction=\"sum\"", 4);
}

TEST_F(ComparedSamples, RanksThatShardAMatrixTrainAsOneProcess) {
  expect_as_one_process(", temperature=0.5, symmetric=true", 3,
                        {{"tower.weight", Sharding::columns}});
}

TEST_F(ComparedSamples, MicroBatchesAreRefused) {
  std::vector<std::string> more = keys("");
  more.push_back("micro_batch=4");
  const std::string text = testing::error_text([&] { run_ranks({.ranks = 1, .keys = more}); });
  EXPECT_THAT(text, HasSubstr("micro_batch: the loss \"info_nce\" (info_nce) compares each sample "
                              "with all others of its batch, which a micro-batch lacks"));
  EXPECT_THAT(text, HasSubstr("expected micro-batches of 8 samples, as many as the step has, got "
                              "4 (leave micro_batch out"));
}

}  // namespace
}  // namespace tandem
