// Whole trainings over ranks that share the rows of a table: steps, evaluations in between, what
// stops or fails in one of them, and checkpoints that other numbers of ranks go on with.
#include <gmock/gmock.h>

#include <cmath>
#include <exception>

#include "engine/graph/builder.h"
#include "engine/training/evaluation.h"
#include "tests/training/ranks/rank_runs.h"

namespace tandem {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RankRuns;
using testing::SmallEngine;
using testing::Trained;

constexpr std::int64_t rows = 31, columns = 2, fields = 3;

/// ids int64 [batch, 3] -> table (31 x 2) -> logits of 3 classes.
Graph table_network(const OperatorSet& operators, std::int64_t batch) {
  GraphBuilder g(operators);
  const auto parameter = [&](const std::string& name, Shape shape) {
    State state;
    state.name = name + ".weight";
    state.path = name + ":weight";
    state.trainable = true;
    state.start = HostTensor(TensorType{DType::float32, std::move(shape)});
    double i = 0;
    for (float& x : state.start.as<float>()) x = static_cast<float>(0.5 * std::sin(i += 1.7));
    return g.state(std::move(state));
  };
  const ValueId ids = g.input("ids", {DType::int64, {batch, fields}});
  g.set_scope({"table", Phase::forward, {}});
  const ValueId found =
      g.add_node("Gather", {parameter("table", {rows, columns}), ids}, {{"axis", std::int64_t{0}}});
  g.set_scope({"head", Phase::forward, {}});
  g.output("logits", g.matmul(g.reshape(found, {batch, fields * columns}),
                              parameter("head", {fields * columns, 3})));
  return g.finish();
}

std::shared_ptr<const DataSource> table_data(std::int64_t samples, std::int64_t wrong = -1) {
  HostTensor ids(TensorType{DType::int64, {samples, fields}}),
      labels(TensorType{DType::int64, {samples}});
  for (std::int64_t i = 0; i < samples; ++i) {
    for (std::int64_t k = 0; k < fields; ++k)
      ids.as<std::int64_t>()[i * fields + k] = (i * i * 7 + k * 11 + i * k) % rows;
    labels.as<std::int64_t>()[i] = i * 5 % 3;
  }
  if (wrong >= 0) ids.as<std::int64_t>()[wrong * fields] = rows + 9;
  return make_array_source({{"ids", ids}, {"labels", labels}});
}

class TableTrainingTest : public testing::RankTraining {
 protected:
  TableTrainingTest() {
    forward_ = table_network;
    train_ = table_data(22);
  }

  const Shardings shards_{{"table.weight", Sharding::rows}};

  /// The table of all ranks.
  static std::vector<double> table_of(const RankRuns& runs) {
    const std::size_t ranks = runs.ranks.size();
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const auto row = static_cast<std::size_t>(i / columns);
      const HostTensor part = runs.ranks[row % ranks].training->states().read("table.weight");
      numbers.push_back(
          part.number(static_cast<std::int64_t>(row / ranks) * columns + i % columns));
    }
    return numbers;
  }
  static void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
  }
  void expect_as_one_process(const std::vector<std::string>& keys) {
    const RankRuns one = run_ranks({.ranks = 1, .keys = keys});
    for (const int ranks : {2, 3, 4}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks");
      const RankRuns many = run_ranks({.ranks = ranks, .keys = keys, .shards = shards_});
      ASSERT_THAT(many.errors, Each(IsEmpty()));
      expect_near(many.first().all("loss"), one.first().all("loss"));
      expect_near(table_of(many), table_of(one));
      ASSERT_EQ(many.first().evaluations.size(), one.first().evaluations.size());
      for (std::size_t i = 0; i < one.first().evaluations.size(); ++i) {
        for (const auto& [name, value] : one.first().evaluations[i].values)
          EXPECT_NEAR(Trained::value(many.first().evaluations[i], name), value, 1e-5) << name;
      }
    }
  }

  /// Three ranks evaluate in micro-batches of at most 3 samples: what each throws, or "stopped". A
  /// rank that is through says nothing to the others, which may not be yet.
  std::vector<std::string> evaluate(std::shared_ptr<const DataSource> data,
                                    const std::function<bool(int rank)>& stops) {
    std::vector<std::string> ends(3);
    testing::on_rank_threads(3, [&](RankGroup& group) {
      SmallEngine engine;
      engine.cpu->join(group.make_communicator());
      RunParts parts = engine.parts();
      parts.ranks = group.rendezvous();
      parts.shards = shards_;
      parts.forward = [&](std::int64_t batch, bool) {
        return table_network(engine.operators, batch);
      };
      const RunConfig config = testing::small_config(folder_.path(), {});
      StateStore states;
      Evaluation evaluation(config, parts, data, states, make_arenas());
      std::string& end = ends[static_cast<std::size_t>(group.rank())];
      try {
        const auto values =
            evaluation.run([&](std::int64_t) { return stops && stops(group.rank()); });
        if (!values) end = "stopped";
      } catch (const std::exception& error) {
        end = error.what();
      }
    });
    return ends;
  }
};

const std::vector<std::string> keys{"steps=9", "optimizer.kind=lazy_adam", "eval.every=\"3 steps\"",
                                    "eval.metrics=[\"accuracy\"]"};

// 22 samples: steps of 8, 8 and 6, which 3 and 4 ranks do not divide.
TEST_F(TableTrainingTest, AsOneProcess) {
  eval_ = table_data(19);
  expect_as_one_process(keys);
}

// Some ranks have nothing to evaluate, or one micro-batch less than others.
TEST_F(TableTrainingTest, EvaluationsOfFewSamples) {
  for (const std::int64_t samples : {1, 3, 9, 17}) {
    eval_ = table_data(samples);
    expect_as_one_process(keys);
  }
}

TEST_F(TableTrainingTest, ADenseGradientOfASmallTable) {
  expect_as_one_process({"steps=6", "optimizer.kind=adam", "optimizer.clip_norm=0.1"});
}

// A rank that finds an id out of range tells the others when all are through.
TEST_F(TableTrainingTest, AnEvaluationThatFailsOnOneRankEndsOnAll) {
  for (const std::int64_t wrong : {0, 39}) {  // of rank 0, of rank 2
    const std::vector<std::string> errors = evaluate(table_data(40, wrong), {});
    EXPECT_THAT(errors[0], HasSubstr("an index is out of range in the held-out data"));
    EXPECT_THAT(errors, Each(::testing::Not(IsEmpty())));
  }
}

TEST_F(TableTrainingTest, AnEvaluationThatOneRankStopsEndsOnAll) {
  EXPECT_THAT(evaluate(table_data(40), [](int rank) { return rank == 1; }), Each("stopped"));
  EXPECT_THAT(evaluate(table_data(40), [](int) { return false; }), Each(IsEmpty()));
}

}  // namespace
}  // namespace tandem
