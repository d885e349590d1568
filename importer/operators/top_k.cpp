// TopK, and what needs the place of the largest element: ArgMax, ArgMin, Hardmax.
#include <fmt/format.h>

#include "importer/operators/counted.h"
#include "importer/operators/elements_of.h"
#include "importer/operators/reductions.h"

namespace tandem::importer::operators {
namespace {

Attributes one_of_each(const Shape& x, std::int64_t axis, bool reversed) {
  const auto at = static_cast<std::size_t>(axis);
  Ints starts(x.size(), 0), steps(x.size(), 1);
  if (reversed && x[at] > 0) {
    starts[at] = x[at] - 1;
    steps[at] = -1;
  }
  return {{"starts", starts}, {"sizes", Ints(x)}, {"steps", steps}};
}

// The place of the largest element along the axis, which stays with extent 1; the first one, or
// the last one, where several are.
Term place_of_largest(NodeContext& node, const Term& x, std::int64_t axis, bool last) {
  const std::int64_t extent = x.type.shape[static_cast<std::size_t>(axis)];
  if (extent < 1) node.fail("the axis has no elements");
  const Attributes all{{"axis", axis}, {"k", std::int64_t{1}}, {"largest", std::int64_t{1}}};
  if (!last) return node.make_all("TopK", {x}, all)[1];
  const Term back = node.make("Slice", {x}, one_of_each(x.type.shape, axis, true));
  const Term place = node.make_all("TopK", {back}, all)[1];
  const Term end = node.constant(HostTensor::from<std::int64_t>({}, {extent - 1}));
  return node.make("Sub", {end, place});
}

void arg_extreme(NodeContext& node, bool smallest) {
  const std::int64_t axis = node.axis(node.integer("axis", 0), node.rank(0));
  const Term x = smallest ? reversed_order(node, node.in(0)) : node.in(0);
  const Term place = place_of_largest(node, x, axis, node.flag("select_last_index", false));
  Shape shape = place.type.shape;
  if (!node.flag("keepdims", true)) shape.erase(shape.begin() + axis);
  node.out(0, node.make("Reshape", {place}, {{"shape", shape}}));
}

}  // namespace

// k: an attribute in version 1, then an input.
void top_k(NodeContext& node) {
  const std::int64_t axis = node.axis(node.integer("axis", -1), node.rank(0));
  const std::int64_t extent = node.shape(0)[static_cast<std::size_t>(axis)];
  const std::int64_t k = node.version() < 10 ? node.integer("k") : node.static_integer(1, "k");
  if (k < 0 || k > extent) node.fail("k", fmt::format("0 to {}", extent), std::to_string(k));
  node.flag("sorted", true);  // results in any order may also be sorted
  const std::vector<Term> results = node.make_all(
      "TopK", {node.in(0)},
      {{"axis", axis}, {"k", k}, {"largest", std::int64_t{node.flag("largest", true)}}});
  node.out(0, results[0]);
  node.out(1, results[1]);
}

void arg_max(NodeContext& node) { arg_extreme(node, false); }
void arg_min(NodeContext& node) { arg_extreme(node, true); }

// 1 at the first largest element. Before version 13 over all axes from `axis` on.
void hardmax(NodeContext& node) {
  const bool flattens = node.version() < 13;
  const std::int64_t axis = node.axis(node.integer("axis", flattens ? 1 : -1), node.rank(0));
  const Shape& shape = node.shape(0);
  Term x = node.in(0);
  if (flattens) {
    const auto cut = static_cast<std::size_t>(axis);
    x = node.reshape(x, {elements_of(shape, 0, cut), elements_of(shape, cut, shape.size())});
  }
  const std::int64_t own = flattens ? 1 : axis;
  const std::size_t rank = x.type.rank();
  const Term place = place_of_largest(node, x, own, false);
  const Term numbers = counted(node, x.type.shape[static_cast<std::size_t>(own)],
                               static_cast<std::size_t>(own), rank);
  const Term y = node.cast(node.make("Equal", {place, numbers}), node.dtype(0));
  node.out(0, node.make("Reshape", {y}, {{"shape", shape}}));
}

}  // namespace tandem::importer::operators
