// Whole trainings with tensor-parallel matrices: initial values, evaluation, checkpoints.
#include <cstring>
#include <map>

#include "engine/graph/shard_conversion.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "tests/training/ranks/rank_runs.h"

namespace tandem {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RankRuns;
using testing::Trained;

// [out, in]: fc1 and fc2 are a pair, fc3 is the head.
const Shardings shards{{"fc1.weight", Sharding::rows},
                       {"fc2.weight", Sharding::columns},
                       {"fc3.weight", Sharding::rows}};

class TensorParallel : public testing::RankTraining {
 protected:
  TensorParallel() {
    forward_ = [](const OperatorSet& operators, std::int64_t batch) {
      return testing::small_network(operators, batch, {10, 7});
    };
    eval_ = testing::small_data(13, 5);
  }

  const std::vector<std::string> keys_{"steps=8",
                                       "optimizer.kind=adam",
                                       "optimizer.lr=0.01",
                                       "parameters.init=[{at=\"**\", kind=\"normal\", std=0.4}]",
                                       "eval.every=\"3 steps\"",
                                       "eval.metrics=[\"accuracy\", \"loss\"]"};

  static void expect_same(const CheckpointContent& found, const CheckpointContent& expected,
                          double tolerance) {
    const auto compare = [&](const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i) {
        ASSERT_EQ(a[i].name, b[i].name);
        ASSERT_EQ(a[i].tensor.type(), b[i].tensor.type());
        for (std::int64_t k = 0; k < a[i].tensor.type().elements(); ++k)
          ASSERT_NEAR(a[i].tensor.number(k), b[i].tensor.number(k), tolerance) << a[i].name;
      }
    };
    compare(found.model, expected.model);
    compare(found.optimizer, expected.optimizer);
  }

  static CheckpointContent last_of(const RankRuns& runs, std::uint64_t step) {
    return read_checkpoint(runs.first().result.run_dir + "/checkpoints/" + checkpoint_name(step));
  }
};

TEST_F(TensorParallel, TrainsAsOneProcess) {
  const RankRuns alone = run_ranks({.ranks = 1, .keys = keys_});
  ASSERT_THAT(alone.errors, Each(IsEmpty()));
  const CheckpointContent expected = last_of(alone, 8);
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    const RankRuns runs = run_ranks({.ranks = ranks, .keys = keys_, .shards = shards});
    ASSERT_THAT(runs.errors, Each(IsEmpty()));
    const std::vector<double> losses = alone.first().all("loss"), found = runs.first().all("loss");
    ASSERT_EQ(found.size(), losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(found[i], losses[i], 1e-5);
    ASSERT_EQ(runs.first().evaluations.size(), alone.first().evaluations.size());
    for (std::size_t i = 0; i < runs.first().evaluations.size(); ++i) {
      for (const auto& [name, value] : alone.first().evaluations[i].values)
        EXPECT_NEAR(Trained::value(runs.first().evaluations[i], name), value, 1e-5) << name;
    }
    // Files hold whole tensors, whatever the ranks keep.
    expect_same(last_of(runs, 8), expected, 1e-5);
    for (const Trained& rank : runs.ranks) {
      const StateStore& states = rank.training->states();
      for (const std::string name : {"fc1.weight", "fc2.weight", "fc2.weight/exp_avg"}) {
        ASSERT_NE(states.shard(name), nullptr) << name;
        EXPECT_EQ(states.type(name), states.shard(name)->part()) << name;
      }
    }
  }
}

TEST_F(TensorParallel, ACheckpointResumesOnAnyNumber) {
  const RankRuns whole = run_ranks({.ranks = 2, .keys = keys_, .shards = shards});
  ASSERT_THAT(whole.errors, Each(IsEmpty()));
  const CheckpointContent expected = last_of(whole, 8);
  for (const int ranks : {2, 1, 3}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks go on");
    const RankRuns begun =
        run_ranks({.ranks = 2,
                   .keys = keys_,
                   .stops = [](int rank, auto step) { return rank == 1 && step >= 3; },
                   .shards = shards});
    ASSERT_THAT(begun.errors, Each(IsEmpty()));
    ASSERT_LT(begun.first().result.steps, 7u);
    const RankRuns rest = run_ranks(
        {.ranks = ranks, .keys = keys_, .resume = begun.first().result.run_dir, .shards = shards});
    ASSERT_THAT(rest.errors, Each(IsEmpty()));
    expect_same(last_of(rest, 8), expected, ranks == 2 ? 0 : 1e-5);
  }
}

// The model file holds a frozen matrix, checkpoints its hash: that of the whole, even if ranks have
// parts.
TEST_F(TensorParallel, FrozenMatricesAreHashedWhole) {
  bool is_changed = false;
  forward_ = [&](const OperatorSet& operators, std::int64_t batch) {
    Graph graph = testing::small_network(operators, batch, {10, 7});
    for (State& state : graph.states) {
      if (state.name != "fc1.weight") continue;
      state.held_by = HeldBy::model;
      state.trainable = false;
      if (!is_changed) continue;
      state.start = state.start.clone();
      state.start.as<float>()[57] += 1;  // in the last rank's part
    }
    return graph;
  };
  const std::vector<std::string> keys{"steps=8", "optimizer.kind=adam"};
  const RankRuns alone = run_ranks({.ranks = 1, .keys = keys});
  ASSERT_THAT(alone.errors, Each(IsEmpty()));
  const std::map<std::string, std::string> expected = last_of(alone, 8).position.frozen;
  ASSERT_EQ(expected.count("fc1.weight"), 1u);
  for (const int ranks : {2, 1, 3}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks go on");
    const RankRuns begun = run_ranks({.ranks = 2,
                                      .keys = keys,
                                      .stops = [](int, auto step) { return step >= 3; },
                                      .shards = shards});
    ASSERT_THAT(begun.errors, Each(IsEmpty()));
    const std::string run_dir = begun.first().result.run_dir;
    const RankRuns rest =
        run_ranks({.ranks = ranks, .keys = keys, .resume = run_dir, .shards = shards});
    ASSERT_THAT(rest.errors, Each(IsEmpty()));
    EXPECT_EQ(last_of(rest, 8).position.frozen, expected);
  }
  const RankRuns begun = run_ranks({.ranks = 2,
                                    .keys = keys,
                                    .stops = [](int, auto step) { return step >= 3; },
                                    .shards = shards});
  is_changed = true;
  const RankRuns other = run_ranks(
      {.ranks = 2, .keys = keys, .resume = begun.first().result.run_dir, .shards = shards});
  EXPECT_THAT(other.errors, Each(HasSubstr("fc1.weight")));
  EXPECT_THAT(other.errors, Each(HasSubstr("the base model has other values")));
}

// The head has three classes.
TEST_F(TensorParallel, MoreRanksThanColumnsAreRefused) {
  const RankRuns runs = run_ranks({.ranks = 4, .keys = keys_, .shards = shards});
  EXPECT_THAT(runs.errors, Each(HasSubstr("fc3:weight")));
  EXPECT_THAT(runs.errors, Each(HasSubstr("some of 4 ranks would have none")));
}

}  // namespace
}  // namespace tandem
