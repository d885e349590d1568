// Evaluation over ranks: each computes a part, all get the numbers of one process.
#include "engine/train/evaluation/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "engine/graph/builder.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/rank_threads.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/support.h"

namespace tandem {
namespace {

using testing::on_rank_threads;

/// The small network with a running statistic that is added to its logits.
Graph with_statistic(const OperatorSet& operators, std::int64_t batch) {
  GraphBuilder g(operators, testing::small_network(operators, batch));
  const ValueId logits = g.graph().find_output("logits")->value;
  State state;
  state.name = "shift";
  state.path = "norm:shift";
  state.kind = StateKind::buffer;
  state.start = HostTensor::from<float>({3}, {0, 0, 0});
  const ValueId shift = g.state(std::move(state));
  g.graph().outputs.clear();
  g.set_scope({"norm", Phase::forward, {}});
  g.output("logits", g.add(logits, shift));
  return g.finish();
}

class RankEvaluationTest : public ::testing::Test {
 protected:
  std::optional<Evaluation::Values> evaluate(
      std::shared_ptr<Rendezvous> ranks, std::int64_t samples, float shift,
      const std::function<bool(std::int64_t)>& stops = {}) const {
    testing::SmallEngine engine;
    RunParts parts = engine.parts();
    parts.ranks = std::move(ranks);
    testing::own_model(parts).make_graph = [&](const ForwardKey& key) {
      const std::int64_t batch = key.samples;
      return with_statistic(engine.operators, batch);
    };
    const RunConfig config =
        testing::small_config(folder_.path(), {"eval.metrics=[\"accuracy\", \"loss\"]"});
    StateStore states;
    Evaluation evaluation(config, parts, testing::small_data(samples, 9), states, make_arenas());
    if (states.has("shift"))
      states.write("shift", HostTensor::from<float>({3}, {shift, 0, -shift}));
    return evaluation.run(stops);
  }
  testing::TemporaryFolder folder_;
};

TEST_F(RankEvaluationTest, SharesGiveTheNumbersOfOneProcess) {
  for (const std::int64_t samples : {21, 8, 3}) {
    const Evaluation::Values whole = *evaluate(one_rank(), samples, 0.5f);
    for (const int ranks : {2, 3, 5}) {  // with 3 samples, some of 5 ranks have none
      SCOPED_TRACE(std::to_string(samples) + " samples, " + std::to_string(ranks) + " ranks");
      std::vector<Evaluation::Values> found(static_cast<std::size_t>(ranks));
      on_rank_threads(ranks, [&](RankGroup& group) {
        // Each has a running statistic of its own: that of rank 0 counts.
        const float shift = group.rank() == 0 ? 0.5f : 100.0f;
        found[static_cast<std::size_t>(group.rank())] =
            *evaluate(group.rendezvous(), samples, shift);
      });
      for (const Evaluation::Values& values : found) {
        EXPECT_EQ(values, found[0]);  // the same bits
        ASSERT_EQ(values.size(), whole.size());
        for (std::size_t i = 0; i < whole.size(); ++i) {
          EXPECT_EQ(values[i].first, whole[i].first);
          EXPECT_NEAR(values[i].second, whole[i].second, 1e-6) << whole[i].first;
        }
        EXPECT_EQ(values.back().second, whole.back().second);  // accuracy counts
      }
    }
  }
}

TEST_F(RankEvaluationTest, OneRankIsAskedToStopAndAllDo) {
  on_rank_threads(2, [&](RankGroup& group) {
    const auto values =
        evaluate(group.rendezvous(), 40, 0, [&](std::int64_t) { return group.rank() == 1; });
    EXPECT_FALSE(values.has_value());
  });
}

/// The small network with a table whose rows are added to its hidden layer.
Graph with_table(const OperatorSet& operators, std::int64_t batch) {
  GraphBuilder g(operators, testing::small_network(operators, batch));
  const ValueId logits = g.graph().find_output("logits")->value;
  const ValueId x = g.graph().find_input("x")->value;
  State state;
  state.name = "table.weight";
  state.path = "table:weight";
  state.trainable = true;
  state.start = HostTensor(TensorType{DType::float32, {4, 3}});
  for (std::int64_t i = 0; i < 12; ++i)
    state.start.as<float>()[i] = 0.1f * static_cast<float>(i % 5) - 0.2f;
  const ValueId table = g.state(std::move(state));
  g.graph().outputs.clear();
  g.set_scope({"lookup", Phase::forward, {}});
  const ValueId positive = g.add_node("Greater", {x, g.scalar(0, DType::float32)});
  const ValueId count = g.reduce_sum(g.cast(positive, DType::float32), {1}, false);
  const ValueId ids = g.cast(g.mul(count, g.scalar(0.5, DType::float32)), DType::int64);
  const ValueId rows = g.add_node("Gather", {table, ids}, {{"axis", std::int64_t{0}}});
  g.output("logits", g.add(logits, rows));
  return g.finish();
}

class SharedOutEvaluationTest : public ::testing::Test {
 protected:
  /// Evaluates twice, as a run evaluates again and again.
  Evaluation::Values evaluate(RankGroup* group, std::int64_t samples,
                              const Shardings& shards) const {
    testing::SmallEngine engine;
    testing::Machine machine(1);
    RunParts parts = engine.parts();
    parts.devices = machine.devices;
    if (group != nullptr) {
      for (Device* device : machine.devices) device->join(group->make_communicator());
      parts.ranks = group->rendezvous();
      parts.shards = shards;
    }
    testing::own_model(parts).make_graph = [&](const ForwardKey& key) {
      return with_table(engine.operators, key.samples);
    };
    testing::own_model(parts).make_placement = [](const Graph& graph) {
      Placement placement;
      placement.devices = {"cpu", "emulated:0"};
      placement.nodes.assign(graph.nodes.size(), {1, "test"});
      placement.states.assign(graph.states.size(), {1, 1, "test"});
      return placement;
    };
    const RunConfig config = testing::small_config(
        folder_.path(), {"batch_size=4", "eval.metrics=[\"accuracy\", \"loss\"]"});
    StateStore states;
    Evaluation evaluation(config, parts, testing::small_data(samples, 9), states, make_arenas());
    const Evaluation::Values first = *evaluation.run();
    EXPECT_EQ(*evaluation.run(), first);
    machine.synchronize();
    EXPECT_THAT(machine.monitor->order_errors(), ::testing::IsEmpty());
    return first;
  }
  testing::TemporaryFolder folder_;
};

// Some ranks have fewer micro-batches than others, or none, and take part in those of the others.
TEST_F(SharedOutEvaluationTest, AnyNumberOfSamplesGivesTheNumbersOfOneProcess) {
  const std::vector<Shardings> all{{{"fc2.weight", Sharding::columns}},
                                   {{"fc2.weight", Sharding::rows}},
                                   {{"table.weight", Sharding::rows}},
                                   {{"table.weight", Sharding::table}},
                                   {{"table.weight", Sharding::columns}}};
  for (const std::int64_t samples : {1, 2, 17, 18}) {
    const Evaluation::Values whole = evaluate(nullptr, samples, {});
    for (const Shardings& shards : all) {
      for (const int ranks : {2, 3}) {
        SCOPED_TRACE(shards.begin()->first + " as " + std::string(name_of(shards.begin()->second)) +
                     ", " + std::to_string(samples) + " samples, " + std::to_string(ranks) +
                     " ranks");
        std::vector<Evaluation::Values> found(static_cast<std::size_t>(ranks));
        on_rank_threads(ranks, [&](RankGroup& group) {
          found[static_cast<std::size_t>(group.rank())] = evaluate(&group, samples, shards);
        });
        for (const Evaluation::Values& values : found) {
          EXPECT_EQ(values, found[0]);  // the same bits
          ASSERT_EQ(values.size(), whole.size());
          for (std::size_t i = 0; i < whole.size(); ++i)
            EXPECT_NEAR(values[i].second, whole[i].second, 1e-5) << whole[i].first;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tandem
