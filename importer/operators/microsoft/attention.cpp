// Attention of com.microsoft: with the products before it, with several heads, with shared heads.
#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "importer/operators/heads.h"
#include "importer/operators/rotary.h"

namespace tandem::importer::operators::microsoft {
namespace {

Term whole_numbers(NodeContext& node, const Shape& shape) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(element_count(shape)));
  std::iota(values.begin(), values.end(), std::int64_t{0});
  return node.constant(HostTensor::from(shape, values));
}

// `sizes` numbers each of the last axis, from the first one on.
std::vector<Term> split_last(NodeContext& node, const Term& x, const Ints& sizes) {
  const Shape shape = x.type.shape;
  if (std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) != shape.back()) {
    node.fail("parts of an operand", to_string(Shape(sizes)) + " together", to_string(shape));
  }
  return node.make_all("Split", {x},
                       {{"axis", static_cast<std::int64_t>(shape.size()) - 1}, {"sizes", sizes}});
}

// 0 where a key is seen, `mask_filter_value` where it is padding, to be added: from a mask [B, T]
// or [B, S, T] of numbers, or the lengths [B] of samples.
std::optional<Term> padding_mask(NodeContext& node, std::size_t i, DType dtype, std::int64_t keys) {
  const double hidden = node.number("mask_filter_value", -10000.0);
  if (!node.has(i)) return std::nullopt;
  const Term& mask = node.in(i);
  const Shape& s = mask.type.shape;
  Term seen;
  if (s.size() == 1 && s[0] != keys) {
    const Term ends = node.reshape(node.cast(mask, DType::int64), {s[0], 1, 1, 1});
    seen = node.make("Less", {whole_numbers(node, {keys}), ends});
  } else if (s.size() == 2 && s[1] == keys) {
    seen = node.reshape(node.cast(mask, DType::boolean), {s[0], 1, 1, keys});
  } else if (s.size() == 3 && s[2] == keys) {
    seen = node.reshape(node.cast(mask, DType::boolean), {s[0], 1, s[1], keys});
  } else {
    node.unsupported("with a mask of shape " + to_string(s));
  }
  return node.make("Where", {seen, node.scalar(0, dtype), node.scalar(hidden, dtype)});
}

// Output 0, with the scale that the node says.
void finish(NodeContext& node, AttentionForm& form) {
  const double scale = node.number("scale", 0.0);  // 0: none is given
  form.scale = scale != 0 ? scale : 1.0 / std::sqrt(static_cast<double>(form.q.type.shape[3]));
  node.out(0, join_heads(node, attend(node, form).y));
}

// Output 0 as above, with padding at input `padding`, a mask to add at 5 and `unidirectional`.
void finish_masked(NodeContext& node, AttentionForm& form, std::size_t padding) {
  form.mask = padding_mask(node, padding, form.q.type.dtype, form.k.type.shape[2]);
  if (node.has(5)) form.mask = form.mask ? node.make("Add", {*form.mask, node.in(5)}) : node.in(5);
  form.causal = node.flag("unidirectional", false);
  finish(node, form);
}

// Keys before the first of these queries, which all see.
void prepend(NodeContext& node, Term& x, const Term& past) {
  if (past.type.rank() != 4) node.fail("past", "[B, H, P, D]", to_string(past.type.shape));
  x = node.make("Concat", {past, x}, {{"axis", std::int64_t{2}}});
}

void refuse_set(NodeContext& node, std::initializer_list<const char*> flags) {
  for (const char* name : flags) {
    if (node.integer(name, 0) != 0) node.unsupported(fmt::format("with {}", name));
  }
}

}  // namespace

// q, k, v = input weights + bias
void attention(NodeContext& node) {
  refuse_set(node, {"do_rotary", "rotary_embedding_dim", "past_present_share_buffer"});
  const std::int64_t heads = node.integer("num_heads");
  const std::int64_t all = node.shape(1).back();
  const Ints sizes = node.integers("qkv_hidden_sizes", Ints{all / 3, all / 3, all / 3});
  if (sizes.size() != 3) node.fail("qkv_hidden_sizes", "three sizes", to_string(Shape(sizes)));
  Term product = node.make("MatMul", {node.in(0), node.in(1)});
  if (node.has(2)) product = node.make("Add", {product, node.in(2)});
  const std::vector<Term> parts = split_last(node, product, sizes);
  AttentionForm form = with_heads(node, parts[0], parts[1], parts[2], heads, heads);
  if (node.has(4)) {
    const Shape s = node.shape(4);
    if (s.size() != 5 || s[0] != 2) node.fail("past", "[2, B, H, P, D]", to_string(s));
    const std::vector<Term> past =
        node.make_all("Split", {node.in(4)}, {{"axis", std::int64_t{0}}, {"sizes", Ints{1, 1}}});
    prepend(node, form.k, node.reshape(past[0], {s[1], s[2], s[3], s[4]}));
    prepend(node, form.v, node.reshape(past[1], {s[1], s[2], s[3], s[4]}));
  }
  if (node.wants(1)) {
    Shape one = form.k.type.shape;
    one.insert(one.begin(), 1);
    node.out(1, node.make("Concat", {node.reshape(form.k, one), node.reshape(form.v, one)},
                          {{"axis", std::int64_t{0}}}));
  }
  finish_masked(node, form, 3);
}

void multi_head_attention(NodeContext& node) {
  const std::int64_t heads = node.integer("num_heads");
  Term q = node.in(0), k, v;
  const auto part = [&](const Term& packed, std::int64_t i) {  // part i of [B, S, H, parts, D]
    Shape s = packed.type.shape, starts(5, 0);
    starts[3] = i;
    s[3] = 1;
    const Term one = node.make(
        "Slice", {packed}, {{"starts", Ints(starts)}, {"sizes", Ints(s)}, {"steps", Ints(5, 1)}});
    return node.reshape(one, {s[0], s[1], s[2] * s[4]});
  };
  if (!node.has(1)) {
    const Term packed = q;
    if (packed.type.rank() != 5 || packed.type.shape[3] != 3) {
      node.fail("query without a key", "[B, S, H, 3, D]", to_string(packed.type.shape));
    }
    q = part(packed, 0);
    k = part(packed, 1);
    v = part(packed, 2);
  } else if (!node.has(2)) {
    const Term packed = node.in(1);
    if (packed.type.rank() != 5 || packed.type.shape[3] != 2) {
      node.fail("key without a value", "[B, T, H, 2, D]", to_string(packed.type.shape));
    }
    k = part(packed, 0);
    v = part(packed, 1);
  } else {
    k = node.in(1);
    v = node.in(2);
  }
  if (node.has(3)) {
    if (k.type.rank() != 3) node.unsupported("with a bias for keys that have heads");
    const Ints sizes{q.type.shape.back(), k.type.shape.back(), v.type.shape.back()};
    const std::vector<Term> bias = split_last(node, node.in(3), sizes);
    q = node.make("Add", {q, bias[0]});
    k = node.make("Add", {k, bias[1]});
    v = node.make("Add", {v, bias[2]});
  }
  AttentionForm form = with_heads(node, q, k, v, heads, heads);
  if (node.has(6)) prepend(node, form.k, node.in(6));
  if (node.has(7)) prepend(node, form.v, node.in(7));
  node.out(1, form.k);
  node.out(2, form.v);
  finish_masked(node, form, 4);
}

// Causal, over a whole sequence: without keys of earlier calls the given lengths only say which
// rows are padding after the others, and no other row sees those.
void group_query_attention(NodeContext& node) {
  const std::int64_t heads = node.integer("num_heads"), shared = node.integer("kv_num_heads");
  refuse_set(node, {"smooth_softmax", "qk_output"});
  for (std::size_t i : {std::size_t{3}, std::size_t{4}}) {
    if (node.has(i) && element_count(node.shape(i)) > 0) {
      node.unsupported("with keys and values of earlier calls",
                       "export the model without a cache (use_cache = False)");
    }
  }
  node.has(5), node.has(6);  // lengths
  Term q = node.in(0), k, v;
  if (node.has(1)) {
    k = node.in(1);
    v = node.in(2);
  } else {
    const std::int64_t size = q.type.shape.back() / (heads + 2 * shared);
    const std::vector<Term> parts =
        split_last(node, q, {heads * size, shared * size, shared * size});
    q = parts[0];
    k = parts[1];
    v = parts[2];
  }
  AttentionForm form = with_heads(node, q, k, v, heads, shared);
  const std::int64_t length = form.q.type.shape[2];
  const bool interleaved = node.flag("rotary_interleaved", false);
  if (node.flag("do_rotary", false)) {
    const Term places = node.has(9) ? node.in(9) : whole_numbers(node, {1, length});
    const Term cos = at_positions(node, node.in(7), places);
    const Term sin = at_positions(node, node.in(8), places);
    form.q = rotate(node, form.q, cos, sin, interleaved);
    form.k = rotate(node, form.k, cos, sin, interleaved);
  }
  node.out(1, form.k);
  node.out(2, form.v);
  if (node.has(10)) form.mask = node.in(10);
  const std::int64_t window = node.integer("local_window_size", -1);
  form.causal = true;
  if (window > 0) {
    form.mask = both_masks(node, form.mask, visible_keys(node, length, length, 0, window - 1, -1));
  }
  form.softcap = node.number("softcap", 0.0);
  finish(node, form);
}

// With one position, that of the first query; else one for each query.
void rotary_embedding(NodeContext& node) {
  refuse_set(node, {"is_packed_batching"});
  if (node.number("scale", 1.0) != 1.0) node.unsupported("with a scale");
  const Term& x = node.in(0);
  const std::int64_t rotated = node.integer("rotary_embedding_dim", 0);
  const std::int64_t given = node.integer("num_heads", 0);
  const std::int64_t size = rotated > 0 ? 0 : 2 * node.shape(2).back();
  const std::int64_t heads = given > 0 || size < 1 ? given : x.type.shape.back() / size;
  const Term apart = split_heads(node, x, heads);
  Term places = node.in(1);
  if (places.type.rank() == 1) {
    const Term first = node.cast(places, DType::int64);
    places = node.make("Add", {whole_numbers(node, {1, apart.type.shape[2]}), first});
  }
  const Term y = rotate(node, apart, at_positions(node, node.in(2), places),
                        at_positions(node, node.in(3), places), node.flag("interleaved", false));
  node.out(0, x.type.rank() == 3 ? join_heads(node, y) : y);
}

}  // namespace tandem::importer::operators::microsoft
