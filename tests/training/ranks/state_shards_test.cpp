// Sharded optimizer states: the training of whole ones in a part of the memory.
#include "engine/train/sharding/state_shards.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

#include "engine/graph/error.h"
#include "engine/graph/shard_conversion.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/emulated/emulated_device.h"
#include "placement/derive.h"
#include "placement/resolve.h"
#include "tests/training/ranks/rank_runs.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RankRuns;
using testing::Trained;

// fc2.weight has 257 x 263 elements, which neither 2, 3 nor 4 divide; biases and fc3 stay whole.
Graph wide_network(const OperatorSet& operators, std::int64_t batch) {
  return testing::small_network(operators, batch, {257, 263});
}

const Shardings all_states{{"fc1.weight", Sharding::state}, {"fc1.bias", Sharding::state},
                           {"fc2.weight", Sharding::state}, {"fc2.bias", Sharding::state},
                           {"fc3.weight", Sharding::state}, {"fc3.bias", Sharding::state}};

/// As above, with gradients sharded, too.
Shardings with_gradients() {
  Shardings all = all_states;
  for (auto& [name, sharding] : all) sharding = Sharding::state_and_gradient;
  return all;
}

class StateShardsTest : public testing::RankTraining {
 protected:
  std::deque<std::unique_ptr<Device>> devices_;  // outlive the trainings
  std::mutex mutex_;

  StateShardsTest() { forward_ = wide_network; }

  /// Switches these passes of lowering off.
  static std::function<void(RunParts&)> switched_off(const std::vector<std::string>& passes) {
    return [=](RunParts& parts) { parts.options.lower.disabled_passes = passes; };
  }

  /// `tolerance` is relative to the largest number of the tensor; `whole` has all of each state.
  static void expect_parts(const StateStore& found, const StateStore& whole, double tolerance) {
    for (const std::string& name : whole.names()) {
      if (name.ends_with("/gradient_sum")) continue;
      ASSERT_TRUE(found.has(name)) << name;
      const StateShard* shard = found.shard(name);
      const HostTensor x = found.read(name);
      const HostTensor y = shard != nullptr ? part_of(whole.read(name), *shard) : whole.read(name);
      ASSERT_EQ(x.type(), y.type()) << name;
      double largest = 0, worst = 0;
      // What fills the last part up may differ: a byte that stands for 0 is not 0.
      const std::int64_t count = shard != nullptr ? filled_rows(*shard) : x.type().elements();
      for (std::int64_t i = 0; i < count; ++i) {
        largest = std::max(largest, std::abs(y.number(i)));
        worst = std::max(worst, std::abs(x.number(i) - y.number(i)));
      }
      EXPECT_LE(worst, tolerance * largest) << name;
    }
  }

  static std::size_t optimizer_bytes(const StateStore& states) {
    std::size_t bytes = 0;
    for (const std::string& name : states.names()) {
      if (states.kind(name) == StateKind::optimizer && !name.ends_with("/gradient_sum"))
        bytes += states.type(name).bytes();
    }
    return bytes;
  }

  /// Expects the results of as many ranks with whole states.
  void expect_as_whole(const std::vector<std::string>& keys, bool drop_last = false,
                       const Shardings& shards = all_states, double tolerance = 1e-6) {
    const auto change = [=](int, RunConfig& config) { config.data->drop_last = drop_last; };
    for (const int ranks : {2, 3, 4}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks");
      const RankRuns plain = run_ranks({.ranks = ranks, .keys = keys, .change = change});
      const RankRuns parts =
          run_ranks({.ranks = ranks, .keys = keys, .change = change, .shards = shards});
      ASSERT_THAT(plain.errors, Each(IsEmpty()));
      ASSERT_THAT(parts.errors, Each(IsEmpty()));
      const StateStore& whole = plain.first().training->states();
      for (const Trained& rank : parts.ranks) {
        expect_parts(rank.training->states(), whole, tolerance);
        const double part = static_cast<double>(optimizer_bytes(rank.training->states())) /
                            static_cast<double>(optimizer_bytes(whole));
        EXPECT_LE(part, 1.0 / ranks + 0.06);
      }
      const std::vector<double> losses = plain.first().all("loss"),
                                found = parts.first().all("loss");
      ASSERT_EQ(found.size(), losses.size());
      for (std::size_t i = 0; i < losses.size(); ++i)
        EXPECT_NEAR(found[i], losses[i], 1e-6 * std::max(1.0, losses[i]));
    }
  }
};

TEST_F(StateShardsTest, Momentum) { expect_as_whole({"optimizer.momentum=0.9"}); }

TEST_F(StateShardsTest, Adam) { expect_as_whole({"optimizer.kind=adam", "optimizer.lr=0.01"}); }

TEST_F(StateShardsTest, AdamwInMicroBatches) {
  expect_as_whole({"optimizer.kind=adamw", "optimizer.lr=0.01", "micro_batch=4"}, true);
}

TEST_F(StateShardsTest, Gradients) {
  expect_as_whole({"optimizer.kind=adam", "optimizer.lr=0.01", "optimizer.clip_norm=0.05"}, false,
                  with_gradients());
  // Sums go over ranks first and over micro-batches then: another order than that of whole ones,
  // and Adam divides a gradient by its own size, however much of it has cancelled out.
  expect_as_whole({"optimizer.kind=adamw", "optimizer.lr=0.01", "micro_batch=4"}, true,
                  with_gradients(), 1e-5);
}

// The mean of gradients is sharded; its direction is gathered, and each rank takes the same step.
TEST_F(StateShardsTest, Muon) {
  const std::vector<std::string> keys{"optimizer.kind=adamw", "optimizer.lr=0.01",
                                      "optimizer.groups=[{at=\"*:weight\", kind=\"muon\"}]"};
  expect_as_whole(keys);
  expect_as_whole(keys, false, with_gradients());
}

TEST_F(StateShardsTest, ScheduleFree) {
  const std::vector<std::string> keys{"optimizer.kind=schedule_free_adamw", "optimizer.lr=0.01",
                                      "optimizer.weight_decay=0.1"};
  expect_as_whole(keys);
  expect_as_whole(keys, false, with_gradients());
}

// An evaluation gathers what the trained weights are ahead by.
TEST_F(StateShardsTest, ScheduleFreeEvaluations) {
  eval_ = testing::small_data(19, 9);
  const std::vector<std::string> keys{"steps=6", "optimizer.kind=schedule_free_adamw",
                                      "optimizer.lr=0.05", "eval.every=\"2 steps\"",
                                      "eval.metrics=[\"loss\"]"};
  const RankRuns plain = run_ranks({.ranks = 3, .keys = keys}),
                 parts = run_ranks({.ranks = 3, .keys = keys, .shards = all_states});
  ASSERT_THAT(plain.errors, Each(IsEmpty()));
  ASSERT_THAT(parts.errors, Each(IsEmpty()));
  ASSERT_EQ(plain.first().evaluations.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const double loss = Trained::value(plain.first().evaluations[i], "loss");
    EXPECT_NEAR(Trained::value(parts.first().evaluations[i], "loss"), loss, 1e-6 * loss);
  }
}

// Parts end with whole blocks, so that scales are those of one process.
TEST_F(StateShardsTest, StatesOf8Bits) {
  const std::vector<std::string> keys{"optimizer.kind=adamw8bit", "optimizer.lr=0.01"};
  expect_as_whole(keys);
  expect_as_whole(keys, false, with_gradients());
}

// fc2.weight has 2 bytes for each element, and two scales for each 256 of them.
TEST_F(StateShardsTest, StatesOf8BitsResumeBitByBit) {
  const std::vector<std::string> keys{"steps=6", "optimizer.kind=adamw8bit", "optimizer.lr=0.01"};
  const RankRuns whole = run_ranks({.ranks = 1, .keys = keys});
  const StateStore& states = whole.first().training->states();
  std::size_t bytes = 0;
  for (const char* state : {"exp_avg", "exp_avg_sq", "exp_avg_scale", "exp_avg_sq_scale"})
    bytes += states.type(std::string("fc2.weight/") + state).bytes();
  constexpr std::size_t elements = 257 * 263;
  EXPECT_EQ(bytes, 2 * elements + 8 * ((elements + 255) / 256));
  const RankRuns begun =
      run_ranks({.ranks = 1, .keys = keys, .stops = [](int, auto step) { return step >= 3; }});
  ASSERT_LT(begun.first().result.steps, 6u);
  const RankRuns resumed =
      run_ranks({.ranks = 1, .keys = keys, .resume = begun.first().result.run_dir});
  EXPECT_EQ(testing::difference(resumed.first().training->states(), states), "");
}

// Each rank keeps only its own part of the sum over micro-batches.
TEST_F(StateShardsTest, SumsOfGradientsAreParts) {
  const std::vector<std::string> keys{"optimizer.kind=adam", "micro_batch=4"};
  const auto change = [](int, RunConfig& config) { config.data->drop_last = true; };
  const auto sum_of = [&](const Shardings& shards) {
    const RankRuns runs = run_ranks({.ranks = 2, .keys = keys, .change = change, .shards = shards});
    EXPECT_THAT(runs.errors, Each(IsEmpty()));
    return runs.first().training->states().type("fc2.weight/gradient_sum");
  };
  const std::int64_t all = 257 * 263;
  EXPECT_EQ(sum_of(all_states).elements(), all);
  EXPECT_EQ(sum_of(with_gradients()).elements(), (all + 1) / 2);
}

// Six gradients of 1 MiB on four ranks: either all wait whole for their sums at the same time, or
// only a bucket of 1 MiB while the next one is made. Parts are 1.5 MiB in both.
TEST_F(StateShardsTest, WholeGradientsGiveTheirMemoryAway) {
  const std::vector<std::int64_t> hidden(7, 512);
  forward_ = [=](const OperatorSet& operators, std::int64_t batch) {
    return testing::small_network(operators, batch, hidden);
  };
  const auto arena_of = [&](Sharding sharding) {
    Shardings shards;
    for (int layer = 2; layer <= 7; ++layer)
      shards["fc" + std::to_string(layer) + ".weight"] = sharding;
    const RankRuns runs =
        run_ranks({.ranks = 4, .keys = {"steps=2", "optimizer.kind=adam"}, .shards = shards});
    EXPECT_THAT(runs.errors, Each(IsEmpty()));
    return runs.first().training->main_program().program->plan().memory[0].arena;
  };
  constexpr std::size_t mib = std::size_t{1} << 20;
  EXPECT_LE(arena_of(Sharding::state_and_gradient) + 5 * mib / 2, arena_of(Sharding::state));
}

// Four matrices of 1 MiB, each a bucket, are gathered to where the weights lie: nothing is written
// after an exchange, and no buffer exists for what arrives. Without that pass ranks gather one
// weight while they write the one before. Half a matrix has 128 Ki elements: updates below 64 Ki
// become one call.
TEST_F(StateShardsTest, WeightsAreGatheredInPlace) {
  const std::vector<std::int64_t> hidden(5, 512);
  forward_ = [=](const OperatorSet& operators, std::int64_t batch) {
    return testing::small_network(operators, batch, hidden);
  };
  Shardings shards;
  for (int layer = 2; layer <= 5; ++layer)
    shards["fc" + std::to_string(layer) + ".weight"] = Sharding::state;
  const auto order_of = [&](const std::vector<std::string>& without) {
    const RankRuns runs = run_ranks({.ranks = 2,
                                     .keys = {"steps=2", "optimizer.kind=adam"},
                                     .shards = shards,
                                     .change_parts = switched_off(without)});
    EXPECT_THAT(runs.errors, Each(IsEmpty()));
    const Program& program = *runs.first().training->main_program().program;
    const Lowered& lowered = program.lowered();
    std::string order;
    for (const Node& node : lowered.graph.nodes) {
      if (node.op->name == "AllGather") order += 'g';
      if (node.op->name == "Assign") order += 'w';
      if (node.op->name != "GatherStates") continue;
      order += 's';
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const int buffer = program.plan().buffer_of[node.outputs[i].index];
        EXPECT_EQ(buffer, program.plan().buffer_of[node.inputs[2 * i].index]);
        EXPECT_EQ(program.plan().buffers[buffer].kind, BufferKind::parameter);
      }
    }
    return order;
  };
  EXPECT_EQ(order_of({}), "ssss");
  EXPECT_EQ(order_of({"gather_in_place"}), "ggwgwgww");
}

// Five matrices of 6 KiB are one exchange each way, in addition to the sum of what stays whole;
// without buckets each is an exchange of its own. Both, and those that are not gathered in place,
// compute the same bits, on any number of ranks.
TEST_F(StateShardsTest, SmallStatesTravelTogether) {
  constexpr int layers = 6;
  const std::vector<std::int64_t> hidden(layers, 39);  // 39 x 39 elements
  forward_ = [=](const OperatorSet& operators, std::int64_t batch) {
    return testing::small_network(operators, batch, hidden);
  };
  const auto count = [](const Trained& rank) {
    std::map<std::string, std::pair<int, std::size_t>> found;  // nodes, operands
    for (const Node& node : rank.training->main_program().program->lowered().graph.nodes) {
      if (node.op->role != Role::collective) continue;
      ++found[node.op->name].first;
      found[node.op->name].second += node.outputs.size();
    }
    return found;
  };
  for (const Sharding sharding : {Sharding::state, Sharding::state_and_gradient}) {
    Shardings shards;
    for (int layer = 1; layer <= layers + 1; ++layer) {
      for (const char* role : {".weight", ".bias"})
        shards["fc" + std::to_string(layer) + role] = sharding;
    }
    for (const int ranks : {1, 2, 3, 5, 8}) {
      if (sharding == Sharding::state_and_gradient && ranks != 3) continue;
      SCOPED_TRACE(std::to_string(ranks) + " ranks");
      const auto run = [&](const Shardings& of, const std::vector<std::string>& without) {
        RankRuns runs =
            run_ranks({.ranks = ranks,
                       .keys = {"steps=4", "optimizer.kind=adam", "optimizer.lr=0.01"},
                       .change = [](int, RunConfig& config) { config.data->drop_last = true; },
                       .shards = of,
                       .change_parts = switched_off(without)});
        EXPECT_THAT(runs.errors, Each(IsEmpty()));
        return runs;
      };
      const RankRuns whole = run({}, {}), together = run(shards, {}),
                     alone = run(shards, {"gather_in_place", "bucket_collectives"});
      for (std::size_t r = 0; r < together.ranks.size(); ++r) {
        const StateStore& states = together.ranks[r].training->states();
        EXPECT_EQ(testing::difference(states, alone.ranks[r].training->states()), "");
        expect_parts(states, whole.first().training->states(), 1e-6);
      }
      if (ranks == 1) continue;
      auto found = count(together.first());
      EXPECT_EQ(found["ReduceScatter"], std::pair(1, std::size_t{layers - 1}));
      EXPECT_EQ(found["GatherStates"], std::pair(1, std::size_t{layers - 1}));
      EXPECT_EQ(found["AllGather"].first, 0);
      EXPECT_LE(found["AllReduce"].first, 2);
      found = count(alone.first());
      EXPECT_EQ(found["ReduceScatter"].first, layers - 1);
      EXPECT_EQ(found["AllGather"].first, layers - 1);
      const auto sharded_bytes = [&](const RankRuns& runs) {
        std::size_t bytes = 0;
        const StateStore& states = runs.first().training->states();
        for (int layer = 2; layer <= layers; ++layer) {
          for (const char* moment : {"exp_avg", "exp_avg_sq"})
            bytes += states.type("fc" + std::to_string(layer) + ".weight/" + moment).bytes();
        }
        return static_cast<double>(bytes);
      };
      EXPECT_LE(sharded_bytes(together) / sharded_bytes(whole), 1.0 / ranks + 0.05);
    }
  }
}

// Lookahead writes the weights last: ranks gather them into memory of their own, not in place.
TEST_F(StateShardsTest, Lookahead) {
  const std::vector<std::string> keys{"optimizer.kind=adam", "optimizer.lr=0.01",
                                      "optimizer.lookahead={k=2, alpha=0.5}"};
  const RankRuns plain = run_ranks({.ranks = 3, .keys = keys}),
                 parts = run_ranks({.ranks = 3, .keys = keys, .shards = all_states});
  ASSERT_THAT(plain.errors, Each(IsEmpty()));
  ASSERT_THAT(parts.errors, Each(IsEmpty()));
  for (const Trained& rank : parts.ranks) {
    expect_parts(rank.training->states(), plain.first().training->states(), 1e-6);
    for (const Node& node : rank.training->main_program().program->lowered().graph.nodes)
      EXPECT_NE(node.op->name, "GatherStates");
  }
}

// The norm is that of all parts.
TEST_F(StateShardsTest, Clipping) {
  expect_as_whole({"optimizer.kind=adam", "optimizer.lr=0.01", "optimizer.clip_norm=0.05"});
}

TEST_F(StateShardsTest, ALossScale) {
  expect_as_whole({"optimizer.kind=adam", "optimizer.lr=0.01", "precision.compute=\"float16\""});
}

TEST_F(StateShardsTest, ACheckpointResumesOnAnyNumber) {
  const std::vector<std::string> keys{"steps=10", "optimizer.kind=adamw", "optimizer.lr=0.01"};
  const RankRuns whole = run_ranks({.ranks = 4, .keys = keys, .shards = all_states});
  ASSERT_THAT(whole.errors, Each(IsEmpty()));
  for (const int ranks : {4, 1, 3}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks go on");
    const RankRuns begun =
        run_ranks({.ranks = 4,
                   .keys = keys,
                   .stops = [](int rank, auto step) { return rank == 2 && step >= 4; },
                   .shards = all_states});
    ASSERT_THAT(begun.errors, Each(IsEmpty()));
    ASSERT_LT(begun.first().result.steps, 8u);
    const RankRuns rest = run_ranks({.ranks = ranks,
                                     .keys = keys,
                                     .resume = begun.first().result.run_dir,
                                     .shards = all_states});
    ASSERT_THAT(rest.errors, Each(IsEmpty()));
    EXPECT_EQ(rest.first().result.steps, 10u);
    const std::string end = "/checkpoints/" + checkpoint_name(10);
    const CheckpointContent all = read_checkpoint(whole.first().result.run_dir + end),
                            found = read_checkpoint(rest.first().result.run_dir + end);
    ASSERT_EQ(found.optimizer.size(), all.optimizer.size());
    for (std::size_t i = 0; i < all.optimizer.size(); ++i) {
      const HostTensor &x = found.optimizer[i].tensor, &y = all.optimizer[i].tensor;
      ASSERT_EQ(x.type(), y.type());
      if (ranks == 4) {
        EXPECT_EQ(std::memcmp(x.data(), y.data(), x.bytes()), 0) << all.optimizer[i].name;
      }
      for (std::int64_t k = 0; k < x.type().elements(); ++k)
        ASSERT_NEAR(x.number(k), y.number(k), 1e-6) << all.optimizer[i].name;
    }
  }
}

// An accelerator computes, each rank's host keeps its part of the states.
TEST_F(StateShardsTest, StatesOnTheHost) {
  const auto run = [&](const Shardings& shards) {
    return run_ranks(
        {.ranks = 2,
         .keys = {"optimizer.kind=adam"},
         .shards = shards,
         .change_parts = [&](RunParts& parts) {
           const auto monitor = std::make_shared<OrderChecker>();
           std::unique_ptr<Device> cpu = make_cpu_device(1, monitor);
           cpu->join(std::shared_ptr<Communicator>(parts.devices[0]->communicator(), [](auto*) {}));
           EmulatedOptions options;
           options.name = "emulated:0";
           options.monitor = monitor;
           const std::lock_guard lock(mutex_);
           parts.devices = {devices_.emplace_back(std::move(cpu)).get(),
                            devices_.emplace_back(make_emulated_device(options)).get()};
           ResolveOptions resolving;
           const Policy policy = parse_policy(
               "policy = 1\nrules = [\n  { at = \"**\", on = \"emulated:0\", state = "
               "\"cpu\" },\n]\n",
               "policy.toml");
           const ResolvedPolicy resolved =
               resolve(policy, wide_network(*parts.operators, 8), resolving);
           testing::own_model(parts).make_placement = [resolved](const Graph& graph) {
             return derive_placement(graph, resolved);
           };
         }});
  };
  const RankRuns plain = run({});
  ASSERT_THAT(plain.errors, Each(IsEmpty()));
  for (const Shardings& shards : {all_states, with_gradients()}) {
    const RankRuns parts = run(shards);
    ASSERT_THAT(parts.errors, Each(IsEmpty()));
    for (const Trained& rank : parts.ranks) {
      expect_parts(rank.training->states(), plain.first().training->states(), 1e-6);
      const Lowered& lowered = rank.training->main_program().program->lowered();
      for (std::size_t s = 0; s < lowered.states.size(); ++s) {
        const State& state = lowered.graph.states[s];
        if (state.kind == StateKind::optimizer) {
          EXPECT_EQ(lowered.states[s].device, 0) << state.name;
        }
      }
    }
  }
}

TEST_F(StateShardsTest, KindsThatNeedMoreThanAnElementAreRefused) {
  for (const std::string kind : {"lamb", "adafactor"}) {
    const RankRuns runs =
        run_ranks({.ranks = 2, .keys = {"optimizer.kind=" + kind}, .shards = all_states});
    EXPECT_THAT(runs.errors,
                Each(AllOf(HasSubstr("states of this parameter cannot be sharded over the ranks"),
                           HasSubstr(kind), HasSubstr("fc1:weight"))));
  }
}

}  // namespace
}  // namespace tandem
