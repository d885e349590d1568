#include "tests/placement/policy_graphs.h"

#include <functional>
#include <map>
#include <stdexcept>

#include "engine/graph/builder.h"
#include "tests/placement/support.h"

namespace tandem::testing {
namespace {

ValueId looked_up(GraphBuilder& b, ValueId table, const char* ids, std::int64_t count) {
  return b.add_node("Gather", {table, b.input(ids, {DType::int64, {count}})},
                    {{"axis", std::int64_t{0}}});
}

Graph lookup(std::int64_t columns, bool tied = false) {
  GraphBuilder b(shared_operators());
  b.set_scope({"embed.Gather", Phase::forward, {}});
  const ValueId table = add_weight(b, "embed", {100, columns});
  const ValueId rows = looked_up(b, table, "ids", 8);
  b.set_scope({"head.Add", Phase::forward, {}});
  const ValueId sum = b.add(rows, add_weight(b, "head", {columns}));
  b.set_scope({"tail.Mul", Phase::forward, {}});
  b.output("logits", b.mul(rows, sum));
  if (tied) {
    b.set_scope({"tied.MatMul", Phase::forward, {}});
    b.output("tied", b.matmul(sum, b.transpose_last_two(table)));
  }
  return b.finish();
}

Graph tied_head() {
  GraphBuilder b(shared_operators(), forward_graph(shared_operators()));
  const ValueId table = b.graph().find_state("embed.weight")->initial;
  b.set_scope({"tied.Transpose", Phase::forward, {}});
  const ValueId weight = b.transpose(table, {1, 0});
  b.set_scope({"tied.MatMul", Phase::forward, {}});
  b.output("tied", b.matmul(b.graph().find_value("hidden"), weight));
  return b.finish();
}

Graph frozen_head() {
  Graph graph = shared_graph();
  for (State& state : graph.states) {
    if (state.name == "head.weight") state.trainable = false;
  }
  return graph;
}

Graph shared_weight() {
  Graph graph = shared_graph();
  const ValueId weight = graph.find_state("layers.0.weight")->initial;
  for (Node& node : graph.nodes) {
    if (node.path == "layers.1.MatMul") node.inputs[1] = weight;
  }
  return graph;
}

Graph cubes() {
  GraphBuilder b(shared_operators());
  b.set_scope({"cubes.Gather", Phase::forward, {}});
  b.output("y", looked_up(b, add_weight(b, "cubes", {6, 2, 4}), "ids", 5));
  return b.finish();
}

ValueId vector_of(GraphBuilder& b, const std::string& scope, const std::string& role) {
  State state;
  state.name = scope + "." + role;
  state.path = scope + ":" + role;
  state.trainable = true;
  state.start = HostTensor(TensorType{DType::float32, {8}});
  return b.state(std::move(state));
}

// Products have weights [in, out], block.o [out, in].
Graph attention(bool is_joined) {
  constexpr std::int64_t samples = 2, tokens = 3, width = 8, heads = 4;
  GraphBuilder b(shared_operators());
  const auto product = [&](const std::string& name, ValueId x, std::int64_t out) {
    b.set_scope({name, Phase::forward, {}});
    return b.matmul(x, add_weight(b, name, {b.shape(x).back(), out}));
  };
  const auto by_heads = [&](ValueId x) {
    return b.transpose(b.reshape(x, {samples, tokens, heads, width / heads}), {0, 2, 1, 3});
  };
  const ValueId x = b.input("x", {DType::float32, {samples, tokens, width}});
  std::vector<ValueId> parts;
  const ValueId all = is_joined ? product("block.qkv", x, 3 * width) : x;
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::string name = std::string("block.") + "qkv"[i];
    parts.push_back(by_heads(is_joined ? b.add_node("Slice", {all},
                                                    {{"starts", Ints{0, 0, i * width}},
                                                     {"sizes", Ints{samples, tokens, width}},
                                                     {"steps", Ints{1, 1, 1}}})
                                       : product(name, x, width)));
  }
  b.set_scope({"block.attention", Phase::forward, {}});
  ValueId y = b.add_node("Attention", parts, {{"scale", 0.5}});
  y = b.reshape(b.transpose(y, {0, 2, 1, 3}), {samples, tokens, width});
  b.set_scope({"block.o", Phase::forward, {}});
  y = b.matmul(y, b.transpose(add_weight(b, "block.o", {width, width}), {1, 0}));
  y = b.add(y, vector_of(b, "block.o", "bias"));
  b.set_scope({"norm", Phase::forward, {}});
  y = b.add_node("LayerNormalization",
                 {y, vector_of(b, "norm", "weight"), vector_of(b, "norm", "bias")},
                 {{"axis", std::int64_t{2}}});
  b.output("y", product("up", y, width));
  return b.finish();
}

}  // namespace

const Graph& policy_graph(const std::string& name) {
  static const std::map<std::string, std::function<Graph()>> makers{
      {"lookup 1", [] { return lookup(1); }},
      {"lookup 16", [] { return lookup(16); }},
      {"tied lookup", [] { return lookup(16, true); }},
      {"tied head", tied_head},
      {"frozen head", frozen_head},
      {"shared weight", shared_weight},
      {"cubes", cubes},
      {"attention", [] { return attention(false); }},
      {"joined attention", [] { return attention(true); }}};
  if (name.empty()) return shared_graph();
  static std::map<std::string, Graph> made;
  const auto maker = makers.find(name);
  if (maker == makers.end()) throw std::runtime_error("there is no graph " + name);
  if (!made.contains(name)) made.emplace(name, maker->second());
  return made.at(name);
}

}  // namespace tandem::testing
