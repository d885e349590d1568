// Reductions of every version: axes as attribute or input, absent or empty.
#include "importer/operators/reductions.h"

#include <type_traits>

#include "importer/node_context.h"

namespace tandem::importer::operators {

Term reversed_order(NodeContext& node, const Term& x) {
  const DType dtype = x.type.dtype;
  if (is_float(dtype) || is_float8(dtype)) return node.make("Neg", {x});  // refuses 8-bit floats
  if (dtype == DType::boolean) return node.make("Not", {x});
  const HostTensor ones = with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      return HostTensor::from<T>({}, {static_cast<T>(~zero)});
    }
    return HostTensor();
  });
  return node.make("Sub", {node.constant(ones), x});
}

// Where the sum is 0 the root has no slope; the norm's is taken to be 0 there.
Term root_of_squares(NodeContext& node, const Term& sum) {
  const Term x = as_float(node, sum);
  const Term zero = node.scalar(0, x.type.dtype);
  const Term is_zero = node.make("Equal", {x, zero});
  const Term safe = node.make("Where", {is_zero, node.scalar(1, x.type.dtype), x});
  const Term root = node.make("Where", {is_zero, zero, node.make("Sqrt", {safe})});
  return node.cast(root, sum.type.dtype);
}

Term as_float(NodeContext& node, const Term& x) {
  const DType dtype = x.type.dtype;  // 8-bit floats stay: what reduces refuses them
  return is_float(dtype) || is_float8(dtype) ? x : node.cast(x, DType::float64);
}

namespace {

Ints all_axes(std::int64_t rank) {
  Ints axes;
  for (std::int64_t i = 0; i < rank; ++i) axes.push_back(i);
  return axes;
}

// An input since version 13 (ReduceSum) or 18 (the others).
Attributes reduction(NodeContext& node) {
  std::optional<Ints> given = node.integers("axes");
  if (node.has(1)) given = node.static_integers(1, "axes");
  Ints axes;
  if (given && !given->empty()) {
    axes = node.axes(*given, node.rank(0));
  } else if (!node.flag("noop_with_empty_axes", false)) {
    axes = all_axes(node.rank(0));
  }
  return {{"axes", axes}, {"keepdims", std::int64_t{node.flag("keepdims", true)}}};
}

Term squares(NodeContext& node) { return node.make("Mul", {node.in(0), node.in(0)}); }

void over_space(NodeContext& node, std::string_view op) {
  if (node.rank(0) < 3) node.fail("rank of the input", "3 or more", std::to_string(node.rank(0)));
  Ints axes = all_axes(node.rank(0));
  axes.erase(axes.begin(), axes.begin() + 2);
  node.out(0, node.make(op, {node.in(0)}, {{"axes", axes}, {"keepdims", std::int64_t{1}}}));
}

}  // namespace

void reduce(NodeContext& node) {
  node.out(0, node.make(node.node().op_type(), {node.in(0)}, reduction(node)));
}

void reduce_min(NodeContext& node) {
  const Term largest = node.make("ReduceMax", {reversed_order(node, node.in(0))}, reduction(node));
  node.out(0, reversed_order(node, largest));
}

void reduce_sum_square(NodeContext& node) {
  node.out(0, node.make("ReduceSum", {squares(node)}, reduction(node)));
}

void reduce_l1(NodeContext& node) {
  node.out(0, node.make("ReduceSum", {node.make("Abs", {node.in(0)})}, reduction(node)));
}

void reduce_l2(NodeContext& node) {
  const Term sum = node.make("ReduceSum", {squares(node)}, reduction(node));
  node.out(0, root_of_squares(node, sum));
}

void reduce_log_sum(NodeContext& node) {
  const Term sum = node.make("ReduceSum", {as_float(node, node.in(0))}, reduction(node));
  node.out(0, node.cast(node.make("Log", {sum}), node.dtype(0)));
}

// log(sum(exp(x - m))) + m with m a whole number near the largest x: exponentials stay in range,
// and no gradient flows through integers. Beyond 2^62 numbers are whole, but no int64.
void reduce_log_sum_exp(NodeContext& node) {
  const Term x = as_float(node, node.in(0));
  Attributes kept = reduction(node);
  const Attributes wanted = kept;
  kept.set("keepdims", std::int64_t{1});
  const double limit = 0x1p62;
  const Term largest =
      node.make("Clip", {node.make("ReduceMax", {x}, kept)}, {{"min", -limit}, {"max", limit}});
  const Term shift = node.cast(node.cast(largest, DType::int64), x.type.dtype);
  const Term powers = node.make("Exp", {node.make("Sub", {x, shift})});
  const Term sum = node.make("Log", {node.make("ReduceSum", {powers}, wanted)});
  const Term y = node.make("Add", {sum, node.reshape(shift, sum.type.shape)});
  node.out(0, node.cast(y, node.dtype(0)));
}

void global_average_pool(NodeContext& node) { over_space(node, "ReduceMean"); }
void global_max_pool(NodeContext& node) { over_space(node, "ReduceMax"); }

}  // namespace tandem::importer::operators
