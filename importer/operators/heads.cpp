#include "importer/operators/heads.h"

#include <fmt/format.h>

#include <limits>

#include "engine/passes/match.h"

namespace tandem::importer::operators {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// A mask of bool as numbers to add.
Term as_numbers(NodeContext& node, const Term& mask, DType dtype) {
  if (mask.type.dtype != DType::boolean) return node.cast(mask, dtype);
  return node.make("Where", {mask, node.scalar(0, dtype), node.scalar(-infinity, dtype)});
}

Term causal_mask(NodeContext& node, std::int64_t queries, std::int64_t keys) {
  return *visible_keys(node, queries, keys, keys - queries, -1, 0);
}

AttentionResult step_by_step(NodeContext& node, const AttentionForm& form) {
  const DType dtype = form.q.type.dtype;
  const auto scaled = [&](const Term& x, double factor) {
    return factor == 1.0 ? x : node.make("Mul", {x, node.scalar(factor, x.type.dtype)});
  };
  AttentionResult result;
  const Term k = node.transpose(form.k, {0, 1, 3, 2});
  result.scores = node.make("MatMul", {scaled(form.q, form.scale), k});
  result.capped = result.scores;
  if (form.softcap != 0) {
    const Term part = scaled(result.scores, 1 / form.softcap);
    result.capped = scaled(node.make("Tanh", {part}), form.softcap);
  }
  std::optional<Term> mask = form.mask;
  if (form.causal) {
    mask = both_masks(node, mask, causal_mask(node, form.q.type.shape[2], form.k.type.shape[2]));
  }
  result.biased = result.capped;
  std::optional<Term> sees;  // whether a query sees any key
  Term finite = result.capped;
  if (mask) {
    const Term numbers = as_numbers(node, *mask, dtype);
    result.biased = node.make("Add", {result.capped, numbers});
    const auto axis = static_cast<std::int64_t>(numbers.type.rank()) - 1;
    const Term largest =
        node.make("ReduceMax", {numbers}, {{"axes", Ints{axis}}, {"keepdims", std::int64_t{1}}});
    sees = node.make("Greater", {largest, node.scalar(-infinity, dtype)});
    // A row of -infinity would make its gradients NaN, whatever is done with
    // its weights.
    finite = node.make("Where", {*sees, result.biased, node.scalar(0, dtype)});
  }
  const Term exact = node.cast(finite, form.softmax_type.value_or(dtype));
  const Term soft = node.make("Softmax", {exact}, {{"axis", std::int64_t{3}}});
  result.weights = node.cast(soft, dtype);
  if (sees) result.weights = node.make("Where", {*sees, result.weights, node.scalar(0, dtype)});
  result.y = node.make("MatMul", {result.weights, form.v});
  return result;
}

}  // namespace

Term split_heads(NodeContext& node, const Term& x, std::int64_t heads) {
  const Shape& s = x.type.shape;
  if (s.size() == 4) return x;
  if (s.size() != 3 || heads < 1 || s[2] % heads != 0) {
    node.fail("an operand with heads", "[B, H, S, D], or [B, S, H D] with the number of heads",
              fmt::format("{} and {} heads", to_string(s), heads));
  }
  return node.transpose(node.reshape(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}

Term join_heads(NodeContext& node, const Term& x) {
  const Shape s = x.type.shape;
  return node.reshape(node.transpose(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

Term repeat_heads(NodeContext& node, const Term& x, std::int64_t heads) {
  const Shape s = x.type.shape;
  if (s[1] == heads) return x;
  if (s[1] < 1 || heads % s[1] != 0) {
    node.fail("numbers of heads", "that of queries as a multiple of that of keys and values",
              fmt::format("{} and {}", heads, s[1]));
  }
  const Term apart = node.reshape(x, {s[0], s[1], 1, s[2], s[3]});
  const Term repeated = node.expand(apart, {s[0], s[1], heads / s[1], s[2], s[3]});
  return node.reshape(repeated, {s[0], heads, s[2], s[3]});
}

std::optional<Term> visible_keys(NodeContext& node, std::int64_t queries, std::int64_t keys,
                                 std::int64_t offset, std::int64_t left, std::int64_t right) {
  if (left < 0 && right < 0) return std::nullopt;
  HostTensor visible(TensorType{DType::boolean, {queries, keys}});
  const std::span<bool> to = visible.as<bool>();
  for (std::int64_t i = 0; i < queries; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) {
      const std::int64_t place = i + offset;
      to[static_cast<std::size_t>(i * keys + j)] =
          (left < 0 || j >= place - left) && (right < 0 || j <= place + right);
    }
  }
  return node.constant(std::move(visible));
}

std::optional<Term> both_masks(NodeContext& node, const std::optional<Term>& a,
                               const std::optional<Term>& visible) {
  if (!a || !visible) return a ? a : visible;
  if (a->type.dtype == DType::boolean) return node.make("And", {*a, *visible});
  return node.make("Where", {*visible, *a, node.scalar(-infinity, a->type.dtype)});
}

AttentionForm with_heads(NodeContext& node, const Term& q, const Term& k, const Term& v,
                         std::int64_t heads, std::int64_t shared) {
  AttentionForm form;
  form.q = split_heads(node, q, heads);
  form.k = split_heads(node, k, shared);
  form.v = split_heads(node, v, shared);
  return form;
}

AttentionResult attend(NodeContext& node, AttentionForm form, bool steps) {
  const std::int64_t heads = form.q.type.shape[1];
  const DType dtype = form.q.type.dtype;
  form.k = repeat_heads(node, form.k, heads);
  form.v = repeat_heads(node, form.v, heads);
  // The engine's Attention gives masks no gradient.
  const bool learned =
      form.mask && form.mask->id && reads_state(node.session().builder.graph(), form.mask->id);
  if (steps || learned || form.softcap != 0 || form.softmax_type.value_or(dtype) != dtype) {
    return step_by_step(node, form);
  }
  std::vector<Term> inputs{form.q, form.k, form.v};
  if (form.mask) inputs.push_back(as_numbers(node, *form.mask, dtype));
  AttentionResult result;
  result.y = node.make("Attention", inputs,
                       {{"scale", form.scale}, {"causal", std::int64_t{form.causal}}});
  return result;
}

}  // namespace tandem::importer::operators
