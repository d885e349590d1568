// CumProd by doubling: after step k an element is the product of the 2^k ones up to it. So the
// gradient is that of products, also where some are 0.
#include <algorithm>

#include "importer/operators/ranges.h"

namespace tandem::importer::operators {
namespace {

/// x moved along the axis by that many places, away from its begin (or its end), with ones moved
/// in.
Term moved(NodeContext& node, const Term& x, std::size_t axis, std::int64_t places, bool reverse) {
  const Shape& shape = x.type.shape;
  const std::int64_t extent = shape[axis];
  Ranges kept(shape);
  if (reverse) {
    set_range(kept, axis, extent, places, extent, 1);
  } else {
    set_range(kept, axis, extent, 0, extent - places, 1);
  }
  Ints pads(2 * shape.size(), 0);
  pads[reverse ? axis + shape.size() : axis] = places;
  return node.make("Pad", {node.make("Slice", {x}, kept.attributes())},
                   {{"pads", pads}, {"mode", std::string("constant")}, {"value", 1.0}});
}

}  // namespace

void cum_prod(NodeContext& node) {
  const std::int64_t axis = node.axis(node.static_integer(1, "axis"), node.rank(0));
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t extent = node.shape(0)[at];
  const bool reverse = node.flag("reverse", false);
  Term y = node.widen(node.in(0));
  if (node.flag("exclusive", false) && extent > 0) y = moved(node, y, at, 1, reverse);
  for (std::int64_t places = 1; places < extent; places *= 2) {
    y = node.make("Mul", {y, moved(node, y, at, places, reverse)});
  }
  node.out(0, node.make("Cast", {y}, {{"to", std::string(name_of(node.dtype(0)))}}));
}

}  // namespace tandem::importer::operators
