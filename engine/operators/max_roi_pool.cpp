// y[r, c, bins...] = the largest element of x in each bin of region r, whose corners are rounded to
// elements; 0 where a bin has none. indices = its place in x, flat.
#include "engine/graph/builder.h"
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_max_roi_pool(const NodeView& node) {
  require_float(node, 0);
  require_rank(node, 0, 4);
  require_rank(node, 1, 2);
  const TensorType &x = node.input(0), &rois = node.input(1);
  require_type(node, 1, {x.dtype, {rois.shape[0], 5}});
  require_between(node, "spatial_scale", -1e30, 1e30);
  for (const char* name : {"height", "width"}) {
    const std::int64_t value = node.attributes().integer(name);
    if (value >= 1 && value <= (1 << 20)) continue;
    node.fail(std::string(name) + " is out of range", "1 to 2^20", std::to_string(value));
  }
  if (x.shape[2] < 1 || x.shape[3] < 1 || (rois.shape[0] > 0 && x.shape[0] < 1)) {
    node.fail("x has no elements", "[N, C, height, width]", to_string(x.shape));
  }
  const Shape y{rois.shape[0], x.shape[1], node.attributes().integer("height"),
                node.attributes().integer("width")};
  return {{x.dtype, y}, {DType::int64, y}};
}

// dx: each place gets the dy of the bins that took it. None flows to the regions.
Gradients max_roi_pool_gradient(GradientContext& c) {
  if (!c.dy[0]) return {ValueId{}, ValueId{}};
  const Shape x = c.g.shape(c.x(0));
  const std::int64_t count = element_count(c.g.shape(c.y(0)));
  const ValueId zeros = c.g.expand(c.g.scalar(0, c.g.dtype(c.x(0))), {element_count(x)});
  const ValueId sums = c.g.add_node(
      "ScatterRows", {zeros, c.g.reshape(c.y(1), {count}), c.g.reshape(c.dy[0], {count})},
      {{"reduction", std::string("add")}});
  return {c.g.reshape(sums, x), ValueId{}};
}

}  // namespace

Operator max_roi_pool() {
  return {.name = "MaxRoiPool",
          .inputs = {{"x"}, {"rois"}},
          .outputs = {{"y"}, {"indices"}},
          .attributes = {{"height", std::int64_t{1}, true},
                         {"width", std::int64_t{1}, true},
                         {"spatial_scale", 1.0}},
          .infer = infer_max_roi_pool,
          .gradient = max_roi_pool_gradient,
          .precision = Precision::float32,  // coordinates
          .drops_elements = true};
}

}  // namespace tandem::operators
