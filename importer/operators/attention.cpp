// ONNX's Attention in all of its forms.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "importer/file/tensor_data.h"
#include "importer/operators/heads.h"

namespace tandem::importer::operators {
namespace {

constexpr std::size_t mask_input = 3, past_key = 4, past_value = 5, lengths = 6;

// The mask over all keys: what it does not reach is hidden.
std::optional<Term> whole_mask(NodeContext& node, std::int64_t keys) {
  if (!node.has(mask_input)) return std::nullopt;
  const Term& mask = node.in(mask_input);
  Shape shape = mask.type.shape;
  if (shape.empty() || shape.back() == keys) return mask;
  if (shape.back() > keys) {
    node.fail("mask", fmt::format("at most {} keys", keys), to_string(shape));
  }
  shape.back() = keys - shape.back();
  const bool is_bool = mask.type.dtype == DType::boolean;
  const double hidden = is_bool ? 0 : -std::numeric_limits<double>::infinity();
  const Term rest = node.filled(hidden, {mask.type.dtype, shape});
  return node.make("Concat", {mask, rest}, {{"axis", node.rank(mask_input) - 1}});
}

// The keys that a query sees by its place, where samples have lengths of their own ([B]): keys
// after a length are padding, and the last query stands at the last key that is not padding.
Term visible_within(NodeContext& node, std::int64_t queries, std::int64_t keys, std::int64_t left,
                    std::int64_t right) {
  const std::int64_t batch = node.shape(lengths)[0];
  const auto numbers = [&](const Shape& shape, auto value) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(element_count(shape)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = value(static_cast<std::int64_t>(i));
    }
    return node.constant(HostTensor::from(shape, values));
  };
  const Term ends = node.reshape(node.in(lengths), {batch, 1, 1, 1});
  const Term places = numbers({keys}, [](std::int64_t i) { return i; });
  Term visible = node.make("Less", {places, ends});
  const auto also = [&](const char* relation, std::int64_t reach) {
    // j - i + queries - reach against the length, for key j of query i
    const Term distance = numbers(
        {queries, keys}, [&](std::int64_t i) { return i % keys - i / keys + queries - reach; });
    visible = node.make("And", {visible, node.make(relation, {distance, ends})});
  };
  if (right >= 0) also("LessOrEqual", right);
  if (left >= 0) also("GreaterOrEqual", -left);
  return visible;
}

}  // namespace

void attention(NodeContext& node) {
  const std::int64_t heads = node.integer("q_num_heads", 0);
  const std::int64_t kv_heads = node.integer("kv_num_heads", heads);
  AttentionForm form = with_heads(node, node.in(0), node.in(1), node.in(2), heads, kv_heads);
  if (form.v.type.dtype != form.q.type.dtype) node.unsupported("values of another element type");
  std::int64_t past = 0;
  if (node.has(past_key) != node.has(past_value)) node.fail("past_key and past_value", "both");
  if (node.has(past_key)) {
    if (node.rank(past_key) != 4) {
      node.fail("past_key", "[B, H, P, D]", to_string(node.shape(past_key)));
    }
    past = node.shape(past_key)[2];
    const Attributes along{{"axis", std::int64_t{2}}};
    form.k = node.make("Concat", {node.in(past_key), form.k}, along);
    form.v = node.make("Concat", {node.in(past_value), form.v}, along);
  }
  node.out(1, form.k);
  node.out(2, form.v);

  const std::int64_t queries = form.q.type.shape[2], keys = form.k.type.shape[2];
  form.mask = whole_mask(node, keys);
  const std::int64_t left = node.integer("left_window_size", -1);
  std::int64_t right = node.integer("right_window_size", -1);
  if (node.flag("is_causal", false)) right = right < 0 ? 0 : std::min<std::int64_t>(right, 0);
  if (node.has(lengths)) {
    form.mask = both_masks(node, form.mask, visible_within(node, queries, keys, left, right));
  } else if (left < 0 && right == 0 && past == keys - queries) {
    form.causal = true;
  } else {
    form.mask = both_masks(node, form.mask, visible_keys(node, queries, keys, past, left, right));
  }

  const auto size = static_cast<double>(form.q.type.shape[3]);
  form.scale = node.number("scale", 1.0 / std::sqrt(size));
  form.softcap = node.number("softcap", 0.0);
  if (node.has_attribute("softmax_precision")) {
    form.softmax_type = dtype_from_onnx(static_cast<int>(node.integer("softmax_precision")));
    if (!form.softmax_type) node.fail("softmax_precision", "a type of floating-point numbers");
    form.softmax_type = node.session().type_in_graph(*form.softmax_type);
  }
  const AttentionResult result = attend(node, form, node.wants(3));
  node.out(0, node.rank(0) == 3 ? join_heads(node, result.y) : result.y);
  if (!node.wants(3)) return;
  const std::int64_t mode = node.integer("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) node.fail("qk_matmul_output_mode", "0 to 3", std::to_string(mode));
  const Term* const modes[] = {&result.scores, &result.capped, &result.biased, &result.weights};
  node.out(3, *modes[mode]);
}

}  // namespace tandem::importer::operators
