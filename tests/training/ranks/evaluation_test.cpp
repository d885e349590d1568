// Evaluation over ranks: each computes a part, all get the numbers of one process.
#include "engine/training/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "engine/graph/builder.h"
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
    parts.forward = [&](std::int64_t batch, bool) {
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
    const Evaluation::Values whole = *evaluate(nullptr, samples, 0.5f);
    for (const int ranks : {2, 3, 5}) {  // of 3 samples some of 5 ranks have none
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

}  // namespace
}  // namespace tandem
