// Whole trainings over ranks that shard the rows or the columns of a table: steps, evaluations in
// between, ranks that stop or fail, and checkpoints that other numbers of ranks continue from.
#include <gmock/gmock.h>

#include <cmath>
#include <exception>

#include "engine/graph/builder.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/evaluation/evaluation.h"
#include "tests/training/ranks/rank_runs.h"

namespace tandem {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RankRuns;
using testing::SmallEngine;
using testing::Trained;

constexpr std::int64_t trained_rows = 31, trained_columns = 5, trained_fields = 3;

ValueId parameter(GraphBuilder& g, const std::string& name, Shape shape) {
  State state;
  state.name = name + ".weight";
  state.path = name + ":weight";
  state.trainable = true;
  state.start = HostTensor(TensorType{DType::float32, std::move(shape)});
  double i = 0;
  for (float& x : state.start.as<float>()) x = static_cast<float>(0.5 * std::sin(i += 1.7));
  return g.state(std::move(state));
}

/// ids int64 [batch, 3] -> table (31 x 5) -> logits of 3 classes.
Graph table_network(const OperatorSet& operators, std::int64_t batch) {
  GraphBuilder g(operators);
  const ValueId ids = g.input("ids", {DType::int64, {batch, trained_fields}});
  g.set_scope({"table", Phase::forward, {}});
  const ValueId found =
      g.add_node("Gather", {parameter(g, "table", {trained_rows, trained_columns}), ids},
                 {{"axis", std::int64_t{0}}});
  g.set_scope({"head", Phase::forward, {}});
  g.output("logits", g.matmul(g.reshape(found, {batch, trained_fields * trained_columns}),
                              parameter(g, "head", {trained_fields * trained_columns, 3})));
  return g.finish();
}

/// ids int64 [batch, 8] -> sums of rows of the table -> logits: sums cross.
constexpr std::int64_t summed_fields = 8;
Graph sums_network(const OperatorSet& operators, std::int64_t batch) {
  GraphBuilder g(operators);
  const ValueId ids = g.input("ids", {DType::int64, {batch, summed_fields}});
  g.set_scope({"table", Phase::forward, {}});
  const ValueId sums =
      g.add_node("EmbeddingBag", {parameter(g, "table", {trained_rows, trained_columns}), ids});
  g.set_scope({"head", Phase::forward, {}});
  g.output("logits", g.matmul(sums, parameter(g, "head", {trained_columns, 3})));
  return g.finish();
}

std::shared_ptr<const DataSource> table_data(std::int64_t samples, std::int64_t wrong = -1,
                                             std::int64_t fields = trained_fields) {
  HostTensor ids(TensorType{DType::int64, {samples, fields}}),
      labels(TensorType{DType::int64, {samples}});
  for (std::int64_t i = 0; i < samples; ++i) {
    for (std::int64_t k = 0; k < fields; ++k)
      ids.as<std::int64_t>()[i * fields + k] = (i * i * 7 + k * 11 + i * k) % trained_rows;
    labels.as<std::int64_t>()[i] = i * 5 % 3;
  }
  if (wrong >= 0) ids.as<std::int64_t>()[wrong * fields] = trained_rows + 9;
  return make_array_source({{"ids", ids}, {"labels", labels}});
}

class TableTrainingTest : public testing::RankTraining {
 protected:
  TableTrainingTest() {
    forward_ = table_network;
    train_ = table_data(22);
  }

  const Shardings shards_{{"table.weight", Sharding::rows}},
      by_columns_{{"table.weight", Sharding::columns}};

  /// The table of all ranks.
  static std::vector<double> table_of(const RankRuns& runs) {
    const auto ranks = static_cast<std::int64_t>(runs.ranks.size());
    const StateShard* const shard = runs.first().training->states().shard("table.weight");
    const bool by_columns = shard != nullptr && shard->kind == ShardKind::column_blocks;
    const std::int64_t share = (trained_columns + ranks - 1) / ranks;
    std::vector<HostTensor> parts;
    for (const Trained& rank : runs.ranks)
      parts.push_back(rank.training->states().read("table.weight"));
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < trained_rows * trained_columns; ++i) {
      const std::int64_t row = i / trained_columns, column = i % trained_columns;
      const std::int64_t rank = by_columns ? column / share : row % ranks;
      const std::int64_t at =
          by_columns ? row * share + column % share : row / ranks * trained_columns + column;
      numbers.push_back(parts[static_cast<std::size_t>(rank)].number(at));
    }
    return numbers;
  }
  static void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
  }
  void expect_as_one_process(const std::vector<std::string>& keys) {
    expect_as_one_process(keys, shards_, {2, 3, 4});
  }
  void expect_as_one_process(const std::vector<std::string>& keys, const Shardings& shards,
                             std::initializer_list<int> counts) {
    const RankRuns one = run_ranks({.ranks = 1, .keys = keys});
    for (const int ranks : counts) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks");
      const RankRuns many = run_ranks({.ranks = ranks, .keys = keys, .shards = shards});
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

  static CheckpointContent last_of(const RankRuns& runs, std::uint64_t step) {
    return read_checkpoint(runs.first().result.run_dir + "/checkpoints/" + checkpoint_name(step));
  }
  static void expect_same(const CheckpointContent& found, const CheckpointContent& expected,
                          double tolerance) {
    const auto compare = [&](const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i) {
        ASSERT_EQ(a[i].name, b[i].name);
        ASSERT_EQ(a[i].tensor.type(), b[i].tensor.type()) << a[i].name;
        for (std::int64_t k = 0; k < a[i].tensor.type().elements(); ++k)
          ASSERT_NEAR(a[i].tensor.number(k), b[i].tensor.number(k), tolerance) << a[i].name;
      }
    };
    compare(found.model, expected.model);
    compare(found.optimizer, expected.optimizer);
  }

  /// Three ranks evaluate in micro-batches of at most 3 samples: what each throws, or "stopped". A
  /// rank that has finished sends nothing to the others, which may not have finished yet.
  std::vector<std::string> evaluate(std::shared_ptr<const DataSource> data,
                                    const std::function<bool(int rank)>& stops) {
    std::vector<std::string> ends(3);
    testing::on_rank_threads(3, [&](RankGroup& group) {
      SmallEngine engine;
      engine.cpu->join(group.make_communicator());
      RunParts parts = engine.parts();
      parts.ranks = group.rendezvous();
      parts.shards = shards_;
      testing::own_model(parts).make_graph = [&](const ForwardKey& key) {
        const std::int64_t batch = key.samples;
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

// Sums over the same samples; a rank that has fewer of them pads its share.
TEST_F(TableTrainingTest, SumsAsOneProcess) {
  forward_ = sums_network;
  train_ = table_data(22, -1, summed_fields);
  for (const std::int64_t samples : {1, 3, 9, 17, 19}) {
    eval_ = table_data(samples, -1, summed_fields);
    expect_as_one_process(keys);
  }
}

TEST_F(TableTrainingTest, ADenseGradientOfASmallTable) {
  expect_as_one_process({"steps=6", "optimizer.kind=adam", "optimizer.clip_norm=0.1"});
}

// Columns of 3 and 2 of two ranks, of 2, 2 and 1 of three. Initial values are drawn, too.
TEST_F(TableTrainingTest, ColumnsAsOneProcess) {
  eval_ = table_data(19);
  for (const std::string optimizer :
       {"optimizer={kind=\"sgd\", lr=0.05}", "optimizer={kind=\"lazy_adam\", lr=0.05}",
        "optimizer={kind=\"ftrl\", lr=0.05, initial_accumulator=0.1}"}) {
    SCOPED_TRACE(optimizer);
    expect_as_one_process(
        {"steps=9", optimizer, "eval.every=\"3 steps\"", "eval.metrics=[\"accuracy\"]",
         "parameters.init=[{at=\"**\", kind=\"normal\", std=0.4}]"},
        by_columns_, {2, 3});
  }
}

TEST_F(TableTrainingTest, EvaluationsOfFewSamplesByColumns) {
  for (const std::int64_t samples : {1, 9}) {
    eval_ = table_data(samples);
    expect_as_one_process(keys, by_columns_, {3});
  }
}

// Written by 2 ranks by columns, a checkpoint resumes by columns or by rows, on any number.
TEST_F(TableTrainingTest, CheckpointsOfColumnsResumeOnAnyNumber) {
  const RankRuns whole = run_ranks({.ranks = 2, .keys = keys, .shards = by_columns_});
  ASSERT_THAT(whole.errors, Each(IsEmpty()));
  const CheckpointContent expected = last_of(whole, 9);
  for (const int ranks : {2, 1, 3}) {
    for (const Shardings& shards : {by_columns_, shards_}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks go on by " +
                   std::string(name_of(shards.begin()->second)));
      const RankRuns begun =
          run_ranks({.ranks = 2,
                     .keys = keys,
                     .stops = [](int rank, auto step) { return rank == 1 && step >= 3; },
                     .shards = by_columns_});
      ASSERT_THAT(begun.errors, Each(IsEmpty()));
      ASSERT_LT(begun.first().result.steps, 8u);
      const RankRuns rest = run_ranks(
          {.ranks = ranks, .keys = keys, .resume = begun.first().result.run_dir, .shards = shards});
      ASSERT_THAT(rest.errors, Each(IsEmpty()));
      expect_same(last_of(rest, 9), expected, ranks == 2 && shards == by_columns_ ? 0 : 1e-5);
    }
  }
}

// A rank that finds an id out of range reports it to the others when all have finished.
TEST_F(TableTrainingTest, AnEvaluationThatFailsOnOneRankEndsOnAll) {
  for (const std::int64_t wrong : {0, 39}) {  // in rank 0's samples, in rank 2's
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
