// A wide and a deep table with the same ids, and other lookups of the deep one; their rows or
// columns are sharded. One process with whole tables is the reference; the ranks are threads.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/graph/shard_conversion.h"
#include "engine/operators/tables/rows.h"
#include "tests/training/ranks/graph_training.h"

namespace tandem::testing {

inline constexpr std::int64_t sharded_rows = 2003, sharded_fields = 5;
inline constexpr int steps = 4;

/// What is looked up besides the ids that the two tables have in common.
enum class More { nothing, other_ids, ids_of_a_lookup };

inline Graph forward_graph(const OperatorSet& operators, std::int64_t samples, More more,
                           std::int64_t columns = 4) {
  GraphBuilder b(operators);
  const auto parameter = [&](const std::string& name, const Shape& shape) {
    return b.state(sine_parameter(name, shape));
  };
  const Attributes first_axis{{"axis", std::int64_t{0}}};
  const ValueId ids = b.input("ids", {DType::int64, {samples, sharded_fields}});
  const ValueId deep_table = parameter("deep.weight", {sharded_rows, columns});
  b.set_scope({"wide", Phase::forward, {}});
  const ValueId wide =
      b.add_node("EmbeddingBag", {parameter("wide.weight", {sharded_rows, 1}), ids});
  b.set_scope({"deep", Phase::forward, {}});
  const ValueId deep = b.add_node("Gather", {deep_table, ids}, first_axis);
  std::vector<ValueId> parts{b.reshape(deep, {samples, sharded_fields * columns})};
  if (more == More::other_ids) {
    // Other ids of int32, from the end, absent or twice, with weights.
    const ValueId others = b.input("others", {DType::int32, {samples, 2}});
    b.set_scope({"bag", Phase::forward, {}});
    const ValueId weights = b.filled(0.5, {DType::float32, {samples, 2}});
    parts.push_back(b.add_node("EmbeddingBag", {deep_table, others, weights}));
    b.set_scope({"again", Phase::forward, {}});
    parts.push_back(b.reshape(b.add_node("Gather", {deep_table, ids}, first_axis),
                              {samples, sharded_fields * columns}));
  } else if (more == More::ids_of_a_lookup) {
    // The sign of what was found chooses among two rows.
    b.set_scope({"next", Phase::forward, {}});
    const ValueId found = b.reshape(
        b.add_node("Slice", {parts[0]},
                   {{"starts", Ints{0, 0}}, {"sizes", Ints{samples, 1}}, {"steps", Ints{1, 1}}}),
        {samples});
    const ValueId is_above =
        b.add_node("Greater", {found, b.filled(0.0, {DType::float32, {samples}})});
    const auto integer = [&](std::int64_t id) {
      return b.constant(HostTensor::from<std::int64_t>({}, {id}));
    };
    const ValueId next = b.add_node("Where", {is_above, integer(3), integer(1000)});
    parts.push_back(b.add_node("Gather", {deep_table, next}, first_axis));
  }
  b.set_scope({"dense", Phase::forward, {}});
  const ValueId x =
      parts.size() == 1 ? parts[0] : b.add_node("Concat", parts, {{"axis", std::int64_t{1}}});
  const ValueId product = b.matmul(x, parameter("dense.weight", {b.shape(x)[1], 1}));
  b.output("y", b.add(product, wide));
  return b.finish();
}

enum class Ids { spread, zipf, of_few_owners };

inline const Shardings by_rows{{"wide.weight", Sharding::rows}, {"deep.weight", Sharding::rows}},
    whole_tables{{"wide.weight", Sharding::table}, {"deep.weight", Sharding::table}},
    by_columns{{"deep.weight", Sharding::columns}};  // the wide one has one column

inline std::int64_t id_of(Ids kind, std::int64_t position) {
  std::mt19937_64 random(static_cast<std::uint64_t>(position) * 7919 + 13);
  if (kind == Ids::of_few_owners) return static_cast<std::int64_t>(random() % 20) * 60;
  if (kind == Ids::spread) return static_cast<std::int64_t>(random() % sharded_rows);
  const double uniform = std::uniform_real_distribution<double>(0, 1)(random);
  return std::min(static_cast<std::int64_t>(std::pow(double{sharded_rows}, uniform)),
                  sharded_rows) -
         1;
}

struct Case {
  std::vector<std::string> keys;
  std::int64_t batch = 24, micro_batch = 24;
  More more = More::nothing;
  Ids ids = Ids::spread;
  int device = 0;
  std::int64_t wrong_id = 0;  // where it is not 0, in place of one of them
  std::int64_t columns = 4;   // in the deep table
  Shardings shards = by_rows;
};

inline void feed_ids(const Case& of, const std::string& name, std::int64_t first,
                     std::int64_t samples, void* slot) {
  if (name == "ids") {
    for (std::int64_t e = 0; e < samples * sharded_fields; ++e) {
      const std::int64_t position = first * sharded_fields + e;
      const bool is_wrong = of.wrong_id != 0 && position == sharded_fields;
      static_cast<std::int64_t*>(slot)[e] = is_wrong ? of.wrong_id : id_of(of.ids, position);
    }
  } else if (name == "others") {
    for (std::int64_t e = 0; e < samples * 2; ++e) {
      const std::int64_t position = first * 2 + e;
      static_cast<std::int32_t*>(slot)[e] =
          position % 5 == 0 ? absent_id<std::int32_t>
                            : static_cast<std::int32_t>(-1 - position * 31 % 40);
    }
  }
}

inline GraphTraining training_of(const Case& of) {
  return {.keys = of.keys,
          .batch = of.batch,
          .micro_batch = of.micro_batch,
          .device = of.device,
          .steps = steps,
          .forward =
              [=](const OperatorSet& operators, std::int64_t samples) {
                return forward_graph(operators, samples, of.more, of.columns);
              },
          .feed = [=](const std::string& name, std::int64_t first, std::int64_t samples,
                      void* slot) { feed_ids(of, name, first, samples, slot); },
          .shards = of.shards};
}

inline TrainedGraph train(const Case& of) { return train_graph(training_of(of)); }
inline std::vector<TrainedGraph> train_on(int ranks, const Case& of) {
  return train_graph_on(ranks, training_of(of));
}

/// A whole state, assembled from the ranks' parts if it is sharded.
inline std::vector<double> assembled_table(const std::vector<TrainedGraph>& all,
                                           const std::string& name) {
  const auto ranks = static_cast<std::int64_t>(all.size());
  const auto shard = all[0].shards.find(name);
  const auto& own = all[0].states.at(name);
  std::vector<double> numbers;
  if (shard == all[0].shards.end()) {
    for (std::int64_t i = 0; i < own.type().elements(); ++i) numbers.push_back(own.number(i));
    return numbers;
  }
  const TensorType& whole = shard->second.whole;
  if (shard->second.kind == ShardKind::table) {
    const HostTensor& all_rows = all[static_cast<std::size_t>(shard->second.owner)].states.at(name);
    for (std::int64_t i = 0; i < all_rows.type().elements(); ++i)
      numbers.push_back(all_rows.number(i));
    return numbers;
  }
  const std::int64_t width = whole.elements() / whole.shape[0];
  if (shard->second.kind == ShardKind::column_blocks) {
    const std::int64_t share = (width + ranks - 1) / ranks;
    for (std::int64_t i = 0; i < whole.elements(); ++i) {
      const std::int64_t c = i % width;
      const HostTensor& part = all[static_cast<std::size_t>(c / share)].states.at(name);
      numbers.push_back(part.number(i / width * share + c % share));
    }
    return numbers;
  }
  for (std::int64_t row = 0; row < whole.shape[0]; ++row) {
    const HostTensor& part = all[static_cast<std::size_t>(row % ranks)].states.at(name);
    for (std::int64_t c = 0; c < width; ++c)
      numbers.push_back(part.number(row / ranks * width + c));
  }
  return numbers;
}

/// `tolerance` of numbers below 1, relative above.
inline void expect_training_as_alone(const GraphTraining& of, std::initializer_list<int> counts,
                                     double tolerance = 1e-6) {
  const TrainedGraph alone = train_graph(of);
  const auto near = [=](double expected) { return tolerance * std::max(1.0, std::abs(expected)); };
  for (const int ranks : counts) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    const std::vector<TrainedGraph> all = train_graph_on(ranks, of);
    for (const TrainedGraph& one : all) {
      EXPECT_EQ(one.losses, all[0].losses);
      EXPECT_NEAR(one.norm, alone.norm, near(alone.norm));
      for (int step = 0; step < steps; ++step)
        EXPECT_NEAR(one.losses[step], alone.losses[step], near(alone.losses[step]))
            << "step " << step + 1;
      for (const auto& [name, shard] : all[0].shards) {
        ASSERT_TRUE(one.shards.contains(name)) << name;
        EXPECT_EQ(one.states.at(name).type(), one.shards.at(name).part()) << name;
        EXPECT_EQ(one.shards.at(name).owner, shard.owner) << name;
      }
    }
    for (const auto& [name, expected] : alone.states) {
      ASSERT_TRUE(all[0].states.contains(name)) << name;
      const std::vector<double> whole = assembled_table(all, name);
      ASSERT_EQ(static_cast<std::int64_t>(whole.size()), expected.type().elements()) << name;
      for (std::size_t i = 0; i < whole.size(); ++i) {
        const double number = expected.number(static_cast<std::int64_t>(i));
        ASSERT_NEAR(whole[i], number, near(number)) << name << " " << i;
      }
    }
    EXPECT_TRUE(all[0].shards.contains("deep.weight"));
  }
}

inline void expect_as_alone(const Case& of, std::initializer_list<int> counts) {
  expect_training_as_alone(training_of(of), counts);
}

inline std::vector<std::string> optimizers(const std::string& wide, const std::string& deep,
                                           std::vector<std::string> more = {}) {
  more.push_back("optimizer.kind=sgd");
  more.push_back("optimizer.groups=[{at=\"wide:*\", " + wide + "}, {at=\"deep:*\", " + deep + "}]");
  return more;
}
inline const std::string ftrl = "kind=\"ftrl\", l1=1e-4, l2=1e-4, initial_accumulator=0.1",
                         lazy_adam = "kind=\"lazy_adam\"";

}  // namespace tandem::testing
