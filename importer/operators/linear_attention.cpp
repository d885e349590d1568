// LinearAttention: a state of keys times values in the place of scores.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "importer/operators/heads.h"

namespace tandem::importer::operators {
namespace {

constexpr std::int64_t most_steps = 1024;  // each becomes about twelve nodes

// One element of axis `axis`, which stays as 1.
Term at(NodeContext& node, const Term& x, std::size_t axis, std::int64_t place) {
  Shape sizes = x.type.shape, starts(sizes.size(), 0), steps(sizes.size(), 1);
  sizes[axis] = 1;
  starts[axis] = place;
  return node.make("Slice", {x}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
}

// Heads of keys as G, each with the queries that share it as R: q [B, G, R, T, D], k [B, G, T, D],
// v [B, G, T, E], state [B, G, D, E], decay [B, G, T, D or 1], rate [B, G or 1, T, 1].
struct Operands {
  Term q, k, v, state;
  std::optional<Term> decay, rate;
};

// state += kᵀ v and y = q state, of all steps at once: y = tril(q kᵀ) v + q state.
Term all_steps(NodeContext& node, Operands& o) {
  const Shape s = o.q.type.shape;
  const std::int64_t length = s[3];
  const auto repeated = [&](const Term& x) {
    const Shape& shape = x.type.shape;
    return node.reshape(x, {shape[0], shape[1], 1, shape[2], shape[3]});
  };
  const Term k = node.transpose(o.k, {0, 1, 3, 2});
  const Term scores = node.make("MatMul", {o.q, repeated(k)});
  const Term seen = *visible_keys(node, length, length, 0, -1, 0);
  const Term zero = node.scalar(0, o.q.type.dtype);
  const Term before = node.make("Where", {seen, scores, zero});
  const Term new_part = node.make("MatMul", {before, repeated(o.v)});
  const Term old_part = node.make("MatMul", {o.q, repeated(o.state)});
  o.state = node.make("Add", {o.state, node.make("MatMul", {k, o.v})});
  return node.make("Add", {new_part, old_part});
}

// Decay first, then the state is corrected by what it already holds for the key.
Term attention_steps(NodeContext& node, Operands& o) {
  const Shape q = o.q.type.shape;
  const std::int64_t batch = q[0], groups = q[1], shared = q[2], length = q[3], size = q[4];
  if (length > most_steps) {
    node.unsupported(fmt::format("over more than {} steps", most_steps),
                     "bind the sequence to a shorter one");
  }
  std::vector<Term> results;
  for (std::int64_t t = 0; t < length; ++t) {
    if (o.decay) {
      const Term decay = node.make("Exp", {at(node, *o.decay, 2, t)});
      const Term column = node.reshape(decay, {batch, groups, decay.type.shape[3], 1});
      o.state = node.make("Mul", {o.state, column});
    }
    const Term k = at(node, o.k, 2, t);
    Term v = at(node, o.v, 2, t);
    if (o.rate) {
      const Term known = node.make("MatMul", {k, o.state});
      v = node.make("Mul", {at(node, *o.rate, 2, t), node.make("Sub", {v, known})});
    }
    const Term column = node.reshape(k, {batch, groups, size, 1});
    o.state = node.make("Add", {o.state, node.make("Mul", {column, v})});
    const Term rows = node.reshape(at(node, o.q, 3, t), {batch, groups, shared, size});
    const Term y = node.make("MatMul", {rows, o.state});
    results.push_back(node.reshape(y, {batch, groups, shared, 1, y.type.shape[3]}));
  }
  return results.size() == 1 ? results[0]
                             : node.make("Concat", results, {{"axis", std::int64_t{3}}});
}

}  // namespace

void linear_attention(NodeContext& node) {
  const std::int64_t heads = node.integer("q_num_heads"), groups = node.integer("kv_num_heads");
  if (groups < 1 || heads < 1 || heads % groups != 0) {
    node.fail("q_num_heads", "a multiple of kv_num_heads", fmt::format("{} and {}", heads, groups));
  }
  const auto operand = [&](std::size_t i, std::int64_t parts) {
    return split_heads(node, node.widen(node.in(i)), parts);
  };
  Operands o{.q = operand(0, heads), .k = operand(1, groups), .v = operand(2, groups)};
  const Shape q = o.q.type.shape, k = o.k.type.shape, v = o.v.type.shape;
  const Shape state{k[0], groups, k[3], v[3]};
  if (q[0] != k[0] || q[2] != k[2] || q[3] != k[3] || v[0] != k[0] || v[2] != k[2] || q[2] < 1) {
    node.fail("query, key and value", "equal batches and lengths, keys as large as queries",
              to_string(q) + ", " + to_string(k) + ", " + to_string(v));
  }
  double scale = node.number("scale", 0.0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(k[3]));
  o.q = node.make("Mul", {o.q, node.scalar(scale, o.q.type.dtype)});
  o.q = node.reshape(o.q, {q[0], groups, heads / groups, q[2], q[3]});
  o.state =
      node.has(3) ? node.cast(node.in(3), o.q.type.dtype) : node.filled(0, {o.q.type.dtype, state});
  if (o.state.type.shape != state) {
    node.fail("past_state", to_string(state), to_string(o.state.type.shape));
  }
  const std::string rule = node.text("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta";
  const bool delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") {
    node.fail("update_rule", "linear, gated, delta or gated_delta", rule);
  }
  if (gated) o.decay = operand(4, groups);
  if (delta) o.rate = operand(5, node.shape(5).back() == 1 ? 1 : groups);
  const Term y = gated || delta ? attention_steps(node, o) : all_steps(node, o);
  const Term apart = node.reshape(y, {q[0], heads, q[2], v[3]});
  node.out(0, node.cast(join_heads(node, apart), node.dtype(0)));
  node.out(1, node.cast(o.state, node.has(3) ? node.dtype(3) : node.dtype(0)));
}

}  // namespace tandem::importer::operators
