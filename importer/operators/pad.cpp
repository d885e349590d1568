// Pad of every version; negative pads cut.
#include <fmt/format.h>

#include <algorithm>

#include "engine/graph/float8.h"
#include "importer/operators/float8.h"
#include "importer/operators/ranges.h"

namespace tandem::importer::operators {

void pad(NodeContext& node) {
  const Shape& x = node.shape(0);
  const std::size_t rank = x.size();
  const std::string mode = node.text("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    node.fail("mode", "constant, reflect, edge or wrap", mode);
  }
  const bool inputs = node.version() >= 11;
  Ints given = inputs ? node.static_integers(1, "pads")
                      : node.integers(node.version() < 2 ? "paddings" : "pads", {});
  double value = inputs ? 0.0 : node.number("value", 0.0);
  if (inputs && node.has(2)) value = node.static_number(2, "constant_value");
  Ints axes(rank);
  for (std::size_t i = 0; i < rank; ++i) axes[i] = static_cast<std::int64_t>(i);
  if (node.has(3)) {
    axes = node.static_integers(3, "axes");
    node.axes(axes, node.rank(0));
  }
  if (given.size() != 2 * axes.size()) {
    node.fail("pads", fmt::format("{} numbers", 2 * axes.size()), to_string(Shape(given)));
  }
  Ints pads(2 * rank, 0);
  Ranges kept(x);
  bool cuts = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(node.axis(axes[i], node.rank(0)));
    const std::int64_t before = given[i], after = given[i + axes.size()], limit = 1 << 30;
    if (std::max(before, after) > limit || std::min(before, after) < -limit) {
      node.fail("pads", "numbers up to 2^30", to_string(Shape(given)));
    }
    pads[axis] = std::max<std::int64_t>(before, 0);
    pads[axis + rank] = std::max<std::int64_t>(after, 0);
    const std::int64_t first = std::max<std::int64_t>(-before, 0);
    const std::int64_t last = x[axis] - std::max<std::int64_t>(-after, 0);
    if (first == 0 && last == x[axis]) continue;
    cuts = true;
    set_range(kept, axis, x[axis], first, std::max(first, last), 1);
  }
  const DType dtype = node.dtype(0);
  Term result = as_bytes(node, node.in(0));
  if (is_float8(dtype))
    value = encode_float8(dtype, static_cast<float>(value), dtype == DType::float8_e8m0fnu);
  if (cuts) result = node.make("Slice", {result}, kept.attributes());
  result = node.make("Pad", {result}, {{"pads", pads}, {"mode", mode}, {"value", value}});
  node.out(0, of_bytes(node, result, dtype));
}

}  // namespace tandem::importer::operators
