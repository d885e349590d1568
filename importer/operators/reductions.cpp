// Reductions of every version: axes as attribute or input, absent or empty.
#include <type_traits>

#include "importer/operators/all.h"

namespace tandem::importer {
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

void same(NodeContext& node) {
  node.out(0, node.make(node.node().op_type(), {node.in(0)}, reduction(node)));
}

// The opposite order in the same type: -x, for integers all bits flipped, which is -1 - x or,
// without sign, the largest number - x.
Term reversed(NodeContext& node, const Term& x) {
  const DType dtype = x.type.dtype;
  if (is_float(dtype)) return node.make("Neg", {x});
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

void reduce_min(NodeContext& node) {
  const Term largest = node.make("ReduceMax", {reversed(node, node.in(0))}, reduction(node));
  node.out(0, reversed(node, largest));
}

void sum_of_squares(NodeContext& node) {
  const Term squares = node.make("Mul", {node.in(0), node.in(0)});
  node.out(0, node.make("ReduceSum", {squares}, reduction(node)));
}

void over_space(NodeContext& node, std::string_view op) {
  if (node.rank(0) < 3) node.fail("rank of the input", "3 or more", std::to_string(node.rank(0)));
  Ints axes = all_axes(node.rank(0));
  axes.erase(axes.begin(), axes.begin() + 2);
  node.out(0, node.make(op, {node.in(0)}, {{"axes", axes}, {"keepdims", std::int64_t{1}}}));
}
void global_average_pool(NodeContext& node) { over_space(node, "ReduceMean"); }
void global_max_pool(NodeContext& node) { over_space(node, "ReduceMax"); }

}  // namespace

void add_reductions(std::vector<Lowering>& list) {
  list.push_back({"ReduceSum", same});
  list.push_back({"ReduceMean", same});
  list.push_back({"ReduceMax", same});
  list.push_back({"ReduceMin", reduce_min});
  list.push_back({"ReduceSumSquare", sum_of_squares});
  list.push_back({"GlobalAveragePool", global_average_pool});
  list.push_back({"GlobalMaxPool", global_max_pool});
}

}  // namespace tandem::importer
