// Tensor-parallel matrices: networks of split layers, an attention block and losses over split
// logits. One process with whole matrices is the reference; the ranks are threads.
#include "engine/train/sharding/shard_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/graph/shard_conversion.h"
#include "engine/operators/collectives/collective.h"
#include "tests/training/ranks/graph_training.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto rows = Sharding::rows, columns = Sharding::columns, heads_of_all = Sharding::heads;

/// A graph that is built layer by layer; the matrices have the file's form [in, out], or [out, in]
/// where `transposed`.
struct Layers {
  GraphBuilder b;
  bool transposed = false;

  ValueId at(const std::string& path, ValueId x) {
    b.set_scope({path, Phase::forward, {}});
    return x;
  }
  ValueId product(const std::string& name, ValueId x, std::int64_t out) {
    at(name, x);
    const std::int64_t in = b.shape(x).back();
    const ValueId weight =
        b.state(sine_parameter(name + ".weight", transposed ? Shape{out, in} : Shape{in, out}));
    return b.matmul(x, transposed ? b.transpose(weight, {1, 0}) : weight);
  }
  ValueId linear(const std::string& name, ValueId x, std::int64_t out) {
    const ValueId y = product(name, x, out);
    return b.add(y, b.state(sine_parameter(name + ".bias", {out})));
  }
};

// Sigmoid makes 0.5 of padding: it may not count.
Graph perceptron(const OperatorSet& operators, std::int64_t samples, bool transposed) {
  Layers l{GraphBuilder(operators), transposed};
  ValueId x = l.b.input("x", {DType::float32, {samples, 5}});
  x = l.b.add_node("Relu", {l.linear("first", x, 6)});
  x = l.b.add_node("Sigmoid", {l.linear("up", x, 10)});
  x = l.linear("down", x, 6);
  x = l.b.add_node("Tanh", {x});
  l.b.output("y", l.linear("last", x, 4));
  return l.b.finish();
}

constexpr std::int64_t tokens = 3, width = 8, heads = 4, classes = 11;

ValueId by_heads(Layers& l, ValueId x, std::int64_t samples) {
  const ValueId parts = l.b.reshape(x, {samples, tokens, heads, width / heads});
  return l.b.transpose(parts, {0, 2, 1, 3});
}

enum class Attending { as_one, in_parts };

// Pre-norm attention and perceptron, and a head; logits [samples, tokens, classes].
ValueId transformer(Layers& l, std::int64_t samples, Attending attending) {
  GraphBuilder& b = l.b;
  ValueId x = b.input("x", {DType::float32, {samples, tokens, width}});
  x = l.linear("embed", x, width);
  const auto normal = [&](const std::string& name, ValueId of) {
    l.at(name, of);
    return b.add_node("LayerNormalization",
                      {of, b.state(sine_parameter(name + ".weight", {width})),
                       b.state(sine_parameter(name + ".bias", {width}))},
                      {{"axis", std::int64_t{2}}});
  };
  const ValueId before = normal("norm1", x);
  const ValueId q = by_heads(l, l.linear("q", before, width), samples),
                k = by_heads(l, l.linear("k", before, width), samples),
                v = by_heads(l, l.linear("v", before, width), samples);
  ValueId y;
  l.at("attention", x);
  if (attending == Attending::as_one) {
    y = b.add_node("Attention", {q, k, v}, {{"scale", 0.5}, {"causal", std::int64_t{1}}});
  } else {
    const ValueId scores =
        b.mul(b.matmul(q, b.transpose(k, {0, 1, 3, 2})), b.scalar(0.5, DType::float32));
    std::vector<float> hidden(tokens * tokens, 0);
    for (std::int64_t i = 0; i < tokens; ++i) {
      for (std::int64_t j = i + 1; j < tokens; ++j)
        hidden[static_cast<std::size_t>(i * tokens + j)] = -1e9f;
    }
    const ValueId mask = b.constant(HostTensor::from<float>({1, 1, tokens, tokens}, hidden));
    const ValueId p = b.add_node("Softmax", {b.add(scores, mask)}, {{"axis", std::int64_t{3}}});
    y = b.matmul(p, v);
  }
  y = b.reshape(b.transpose(y, {0, 2, 1, 3}), {samples, tokens, width});
  x = b.add(x, l.linear("o", y, width));
  ValueId z = l.linear("up", normal("norm2", x), 12);
  z = l.linear("down", b.add_node("Gelu", {z}), width);
  x = b.add(x, z);
  return l.product("head", normal("norm3", x), classes);
}

void feed_numbers(const std::string& name, std::int64_t first, std::int64_t samples,
                  std::int64_t each, void* slot) {
  for (std::int64_t e = 0; e < samples * each; ++e) {
    const std::int64_t position = first * each + e;
    if (name == "labels")
      static_cast<std::int64_t*>(slot)[e] = (position * position + 3) % classes;
    else
      static_cast<float*>(slot)[e] =
          static_cast<float>(std::cos(0.7 * static_cast<double>(position)));
  }
}

const Shardings pair{{"up.weight", columns}, {"down.weight", rows}};
/// As above, for matrices that are stored as [out, in].
const Shardings transposed_pair{{"up.weight", rows}, {"down.weight", columns}};

/// The keys with sgd, unless they name another kind.
std::vector<std::string> with_kind(std::vector<std::string> keys) {
  keys.insert(keys.begin(), "optimizer.kind=sgd");
  return keys;
}

GraphTraining perceptron_of(std::vector<std::string> keys, Shardings shards,
                            bool transposed = false) {
  return {
      .keys = with_kind(std::move(keys)),
      .outputs = 4,
      .forward = [=](const OperatorSet& operators,
                     std::int64_t samples) { return perceptron(operators, samples, transposed); },
      .feed = [](const std::string& name, std::int64_t first, std::int64_t samples,
                 void* slot) { feed_numbers(name, first, samples, 5, slot); },
      .shards = std::move(shards)};
}

const Shardings block{{"q.weight", columns},   {"k.weight", columns},  {"v.weight", columns},
                      {"o.weight", rows},      {"up.weight", columns}, {"down.weight", rows},
                      {"head.weight", columns}};

std::string cross_entropy(const std::string& more = "",
                          const std::string& kind = "softmax_cross_entropy") {
  const std::string scores = kind == "nll" ? "log_probabilities" : "logits";
  return "loss.terms=[{name=\"ce\", kind=\"" + kind + "\", " + scores + "=\"" + scores +
         "\", labels=\"labels\"" + more + "}]";
}

GraphTraining transformer_of(std::vector<std::string> keys, Shardings shards,
                             Attending attending = Attending::as_one) {
  if (std::none_of(keys.begin(), keys.end(),
                   [](const auto& key) { return key.starts_with("loss.terms"); }))
    keys.insert(keys.begin(), cross_entropy());
  return {.keys = with_kind(std::move(keys)),
          .forward =
              [=](const OperatorSet& operators, std::int64_t samples) {
                Layers l{GraphBuilder(operators)};
                const ValueId logits = transformer(l, samples, attending);
                l.b.input("labels", {DType::int64, {samples, tokens}});
                l.b.output("logits", logits);
                l.at("log", logits);
                l.b.output("log_probabilities",
                           l.b.add_node("LogSoftmax", {logits}, {{"axis", std::int64_t{2}}}));
                return l.b.finish();
              },
          .feed =
              [](const std::string& name, std::int64_t first, std::int64_t samples, void* slot) {
                feed_numbers(name, first, samples, name == "labels" ? tokens : tokens * width,
                             slot);
              },
          .shards = std::move(shards)};
}

/// A whole state, assembled from the ranks' blocks if it is sharded.
std::vector<double> assembled_matrix(const std::vector<TrainedGraph>& all,
                                     const std::string& name) {
  std::vector<double> numbers;
  const auto shard = all[0].shards.find(name);
  if (shard == all[0].shards.end()) {
    const HostTensor& own = all[0].states.at(name);
    for (std::int64_t i = 0; i < own.type().elements(); ++i) numbers.push_back(own.number(i));
    return numbers;
  }
  const Shape& whole = shard->second.whole.shape;
  const std::size_t axis = shard->second.kind == ShardKind::column_blocks ? 1 : 0;
  const Shape& part = shard->second.part().shape;
  for (std::int64_t r = 0; r < whole[0]; ++r) {
    for (std::int64_t c = 0; c < whole[1]; ++c) {
      std::int64_t at[2] = {r, c};
      const auto rank = static_cast<std::size_t>(at[axis] / part[axis]);
      at[axis] %= part[axis];
      numbers.push_back(all[rank].states.at(name).number(at[0] * part[1] + at[1]));
    }
  }
  return numbers;
}

void expect_products_as_alone(const GraphTraining& of, std::initializer_list<int> counts) {
  const TrainedGraph alone = train_graph(of);
  ASSERT_FALSE(alone.error.has_value());
  EXPECT_GT(std::abs(alone.losses.front() - alone.losses.back()), 1e-4);  // it learns
  for (const int ranks : counts) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    const std::vector<TrainedGraph> all = train_graph_on(ranks, of);
    for (const TrainedGraph& one : all) {
      EXPECT_FALSE(one.error.has_value());
      EXPECT_EQ(one.losses, all[0].losses);
      EXPECT_NEAR(one.norm, alone.norm, 1e-5 * std::max(1.0f, alone.norm));
      for (std::size_t step = 0; step < alone.losses.size(); ++step)
        EXPECT_NEAR(one.losses[step], alone.losses[step], 1e-5) << "step " << step + 1;
      for (const auto& [name, sharding] : of.shards) ASSERT_TRUE(one.shards.contains(name)) << name;
      for (const auto& [name, shard] : one.shards)
        EXPECT_EQ(one.states.at(name).type(), shard.part()) << name;
    }
    for (const auto& [name, expected] : alone.states) {
      ASSERT_TRUE(all[0].states.contains(name)) << name;
      const std::vector<double> whole = assembled_matrix(all, name);
      ASSERT_EQ(static_cast<std::int64_t>(whole.size()), expected.type().elements()) << name;
      double largest = 1e-3, worst = 0;
      for (std::size_t i = 0; i < whole.size(); ++i) {
        const double number = expected.number(static_cast<std::int64_t>(i));
        largest = std::max(largest, std::abs(number));
        worst = std::max(worst, std::abs(whole[i] - number));
      }
      EXPECT_LE(worst, 1e-5 * largest) << name;
    }
  }
}

const std::vector<double> class_weights{1, 2, 0.5, 1, 3, 1, 1, 0.25, 1, 1, 2};
const std::string weighted = ", class_weights=[1, 2, 0.5, 1, 3, 1, 1, 0.25, 1, 1, 2]",
                  ignoring = ", ignore_index=4";

/// Cross-entropy with these options; ranks are fed the sum of weights of the step's labels.
GraphTraining weighted_transformer(const std::string& options, std::int64_t batch) {
  GraphTraining of = transformer_of({"optimizer.momentum=0.9", cross_entropy(options)},
                                    {{"head.weight", columns}});
  of.batch = of.micro_batch = batch;
  of.feed = [fed = of.feed, options, batch](const std::string& name, std::int64_t first,
                                            std::int64_t samples, void* slot) {
    if (!name.ends_with(".denominator")) return fed(name, first, samples, slot);
    double sum = 0;
    const std::int64_t begin = first / 100 * 100 * tokens;  // a step has the next hundred
    for (std::int64_t p = begin; p < begin + batch * tokens; ++p) {
      const std::int64_t label = (p * p + 3) % classes;
      if (options.find(ignoring) != std::string::npos && label == 4) continue;
      sum += options.find(weighted) == std::string::npos
                 ? 1
                 : class_weights[static_cast<std::size_t>(label)];
    }
    *static_cast<float*>(slot) = static_cast<float>(sum);
  };
  return of;
}

const std::string momentum = "optimizer.momentum=0.9", adam_setting = "optimizer.kind=adam";

// 10 columns: equal on 2 ranks, 4 4 2 on 3, 3 3 3 1 on 4.
TEST(ShardProducts, ColumnsThenRows) {
  expect_products_as_alone(perceptron_of({momentum}, pair), {2, 3, 4});
  expect_products_as_alone(perceptron_of({adam_setting}, pair), {2, 3});
}

TEST(ShardProducts, MatricesThatAreReadTransposed) {
  expect_products_as_alone(perceptron_of({momentum}, transposed_pair, true), {2, 3, 4});
}

TEST(ShardProducts, ColumnsAlone) {
  expect_products_as_alone(perceptron_of({momentum}, {{"up.weight", columns}}), {2, 3, 4});
}

TEST(ShardProducts, RowsAlone) {
  expect_products_as_alone(perceptron_of({momentum}, {{"down.weight", rows}}), {2, 3, 4});
}

TEST(ShardProducts, ClippedByTheNormOfAllParts) {
  expect_products_as_alone(perceptron_of({adam_setting, "optimizer.clip_norm=0.01"}, pair), {2, 3});
}

// Each rank has all weights of some output units; padding is a unit that no gradient moves.
TEST(ShardProducts, AdaptiveLimitsOfWholeUnits) {
  const std::vector<std::string> keys{"optimizer.clip_adaptive=0.1"};
  expect_products_as_alone(perceptron_of(keys, {{"up.weight", columns}}), {2, 4});
  expect_products_as_alone(perceptron_of(keys, {{"up.weight", rows}}, true), {4});
}

TEST(ShardProducts, SharesMayDifferByASample) {
  GraphTraining of = perceptron_of({momentum}, pair);
  of.batch = of.micro_batch = 7;
  expect_products_as_alone(of, {2, 3, 4});
}

TEST(ShardProducts, MicroBatches) {
  GraphTraining of = perceptron_of({adam_setting}, pair);
  of.micro_batch = 4;
  expect_products_as_alone(of, {2, 3});
}

TEST(ShardProducts, OnAnAccelerator) {
  GraphTraining of = perceptron_of({momentum}, pair);
  of.device = 1;
  expect_products_as_alone(of, {2});
}

// Heads 4: whole ones on 2 and 4 ranks; on 3 a rank's columns are no whole heads.
TEST(ShardProducts, ATransformerBlock) {
  for (const Attending attending : {Attending::as_one, Attending::in_parts}) {
    expect_products_as_alone(transformer_of({momentum}, block, attending), {2, 4, 3});
  }
}

const Shardings attention_by_heads{{"q.weight", heads_of_all},
                                   {"k.weight", heads_of_all},
                                   {"v.weight", heads_of_all},
                                   {"o.weight", heads_of_all}};

TEST(ShardProducts, AttentionByHeads) {
  expect_products_as_alone(transformer_of({momentum}, attention_by_heads), {2, 4});
}

TEST(ShardProducts, CrossEntropyOfSplitLogits) {
  for (const std::string& options : {std::string(), ignoring, std::string(", label_smoothing=0.1"),
                                     ignoring + ", label_smoothing=0.2", weighted}) {
    SCOPED_TRACE(options);
    expect_products_as_alone(weighted_transformer(options, 7), {2, 3, 4});
  }
  // LogSoftmax in the model, and its likelihoods as the loss.
  expect_products_as_alone(
      transformer_of({momentum, cross_entropy("", "nll")}, {{"head.weight", columns}}), {3});
}

// Losses that read whole logits get them.
TEST(ShardProducts, OtherLossesOfSplitLogits) {
  expect_products_as_alone(weighted_transformer(", label_smoothing=0.1" + weighted, 12), {2});
}

TEST(ShardProducts, LabelsThatAreNoClassesAreReported) {
  GraphTraining of = transformer_of({momentum}, {{"head.weight", columns}});
  const auto fed = of.feed;
  for (const std::int64_t wrong : {classes, std::int64_t{-1}}) {
    of.feed = [&](const std::string& name, std::int64_t first, std::int64_t samples, void* slot) {
      fed(name, first, samples, slot);
      if (name == "labels" && first == 0) static_cast<std::int64_t*>(slot)[2] = wrong;
    };
    const TrainedGraph alone = train_graph(of);
    ASSERT_TRUE(alone.error.has_value());
    const std::vector<TrainedGraph> all = train_graph_on(2, of);
    ASSERT_TRUE(all[0].error.has_value());  // whose sample it is
    EXPECT_FALSE(all[1].error.has_value());
    EXPECT_EQ(all[0].error->kind, alone.error->kind);
    EXPECT_EQ(all[0].error->value, wrong);
    EXPECT_EQ(all[0].error->path, alone.error->path);
  }
}

TEST(ShardProducts, TheSameRanksGiveTheSameBits) {
  const GraphTraining of = transformer_of({momentum}, block);
  const std::vector<TrainedGraph> first = train_graph_on(3, of), second = train_graph_on(3, of);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(first[rank].losses, second[rank].losses);
    for (const auto& [name, value] : first[rank].states)
      EXPECT_EQ(std::memcmp(value.data(), second[rank].states.at(name).data(), value.bytes()), 0)
          << name;
  }
}

Graph graph_of(const GraphTraining& of, int ranks, int rank = 0) {
  static const OperatorSet operators = all_operators();  // nodes point into it
  return training_graph(operators, config_of(of), of, MicroBatchKind::whole, {rank, ranks}).graph;
}

std::map<std::string, int> exchanges(const Graph& graph) {
  std::map<std::string, int> count;
  for (const Node& node : graph.nodes) {
    if (node.op->role == Role::collective) ++count[node.op->name];
  }
  return count;
}

// Forward: samples are gathered before the pair, sums are scattered after it. Backward: the
// reverse.
TEST(ShardProducts, APairOfProductsExchangesTwiceEachWay) {
  std::map<std::string, int> count = exchanges(graph_of(perceptron_of({}, pair), 4));
  EXPECT_EQ(count[all_gather_name], 2);
  EXPECT_EQ(count[reduce_scatter_name], 2);
  EXPECT_EQ(count[all_to_all_name], 0);
}

// The attention's three products share the samples that they gather.
TEST(ShardProducts, AttentionByHeadsExchangesAsAPairDoes) {
  Shardings attention = block;
  for (const char* other : {"up.weight", "down.weight", "head.weight"}) attention.erase(other);
  std::map<std::string, int> count = exchanges(graph_of(transformer_of({}, attention), 4));
  EXPECT_EQ(count[all_gather_name], 2);
  EXPECT_EQ(count[reduce_scatter_name], 2);
  EXPECT_EQ(count[all_to_all_name], 0);
}

// No rank has a float for any class but its own, neither forward nor backward, and each has 1 /
// ranks of the head with its states.
TEST(ShardProducts, NoRankHasAllLogits) {
  const GraphTraining of = transformer_of({adam_setting}, {{"head.weight", columns}});
  const Graph graph = graph_of(of, 4);
  std::size_t bytes = 0;
  for (const State& state : graph.states) {
    if (state.name.starts_with("head.")) bytes += state.start.bytes();
  }
  EXPECT_EQ(bytes, 3 * 4 * static_cast<std::size_t>(width * 3));  // 3 of 11 columns
  for (const Value& value : graph.values) {
    const Shape& shape = value.type.shape;
    EXPECT_EQ(std::count(shape.begin(), shape.end(), classes), 0)
        << value.name << " " << to_string(value.type);
  }
  // To the logits' side: samples and labels; back: two numbers a sample, and their gradients.
  std::map<std::string, int> count = exchanges(graph);
  EXPECT_EQ(count[all_gather_name], 2);
  EXPECT_EQ(count[reduce_scatter_name], 1);
  EXPECT_EQ(count[all_to_all_name], 2);
}

std::string refused_products(GraphTraining of, int ranks, int rank = 0) {
  try {
    graph_of(of, ranks, rank);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "";
}

// `heads` means columns for the weights that make heads, and rows for the one that reads them.
TEST(ShardProducts, HeadsAreColumnsAndRows) {
  Shardings spelt = block;
  for (const char* other : {"up.weight", "down.weight", "head.weight"}) spelt.erase(other);
  const auto shards_of = [](const Graph& graph) {
    std::map<std::string, ShardKind> kinds;
    for (const State& state : graph.states) {
      if (state.shard) kinds.emplace(state.name, state.shard->kind);
    }
    return kinds;
  };
  const Graph by_word = graph_of(transformer_of({}, attention_by_heads), 4),
              by_axes = graph_of(transformer_of({}, spelt), 4);
  EXPECT_EQ(shards_of(by_word), shards_of(by_axes));
  EXPECT_EQ(exchanges(by_word), exchanges(by_axes));
}

// No attention silently falls back to all heads.
TEST(ShardProducts, HeadsThatRanksCannotShareOut) {
  EXPECT_THAT(refused_products(transformer_of({}, attention_by_heads), 3),
              AllOf(HasSubstr("q:weight"), HasSubstr("3 ranks do not divide the 4 heads"),
                    HasSubstr("attention")));
  Shardings without_k = attention_by_heads;
  without_k.erase("k.weight");
  EXPECT_THAT(refused_products(transformer_of({}, without_k), 2),
              AllOf(HasSubstr("weight"), HasSubstr("is computed with all heads")));
  EXPECT_THAT(refused_products(transformer_of({}, {{"up.weight", heads_of_all}}), 2),
              AllOf(HasSubstr("up:weight"), HasSubstr("neither makes queries, keys or values")));
}

TEST(ShardProducts, WhatCannotBeSharedOut) {
  EXPECT_EQ(refused_products(perceptron_of({}, pair), 5), "");
  EXPECT_THAT(refused_products(perceptron_of({}, pair), 6),  // 2 2 2 2 2 0
              AllOf(HasSubstr("up:weight"), HasSubstr("some of 6 ranks would have none"),
                    HasSubstr("fewer ranks")));
  EXPECT_THAT(refused_products(perceptron_of({}, {{"up.bias", columns}}), 2),
              AllOf(HasSubstr("up:bias"), HasSubstr("it is no matrix")));
  for (const std::string kind : {"lamb", "adafactor", "rowwise_adagrad"}) {
    EXPECT_THAT(
        refused_products(perceptron_of({"optimizer.kind=" + kind}, {{"up.weight", columns}}), 2),
        AllOf(HasSubstr("up:weight"), HasSubstr(kind),
              HasSubstr("shards its columns over the ranks")));
  }
}

// If a matrix's product sums over the ranks' parts, each rank has a piece of every unit, and the
// last one cuts off padding: all ranks give the same message.
TEST(ShardProducts, AdaptiveLimitsOfPartsOfUnits) {
  const std::vector<std::string> keys{"optimizer.clip_adaptive=0.1"};
  for (const int rank : {0, 3}) {
    EXPECT_THAT(refused_products(perceptron_of(keys, {{"down.weight", rows}}), 4, rank),
                AllOf(HasSubstr("down:weight"), HasSubstr("shards its rows")))
        << rank;
    EXPECT_THAT(refused_products(perceptron_of(keys, {{"down.weight", columns}}, true), 4, rank),
                AllOf(HasSubstr("down:weight"), HasSubstr("shards its columns")))
        << rank;
  }
}

}  // namespace
}  // namespace tandem::testing
