// y[r, c, bins...] = the mean (or the largest part) of samples of x in region r, each interpolated
// between four elements.
#include "engine/graph/builder.h"
#include "engine/operators/elementwise.h"
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

constexpr std::int64_t limit = 1 << 20;

std::vector<AttributeSpec> roi_align_attributes() {
  return {{"height", std::int64_t{1}, true},
          {"width", std::int64_t{1}, true},
          {"mode", std::string("avg")},
          {"sampling_ratio", std::int64_t{0}},
          {"spatial_scale", 1.0},
          {"half_pixel", std::int64_t{1}}};
}

// Operands x, rois, batches from number `first` on; the shape of y.
Shape pooled(const NodeView& node, std::size_t first) {
  const TensorType& x = node.input(first);
  require_float(node, first);
  require_rank(node, first, 4);
  require_index(node, first + 2);
  require_rank(node, first + 2, 1);
  const std::int64_t rois = node.input(first + 2).shape[0];
  require_type(node, first + 1, {x.dtype, {rois, 4}});
  require_flag(node, "half_pixel");
  require_between(node, "spatial_scale", -1e30, 1e30);
  const std::string& mode = node.attributes().text("mode");
  if (mode != "avg" && mode != "max") node.fail("attribute 'mode'", "avg or max", mode);
  for (const char* name : {"height", "width", "sampling_ratio"}) {
    const std::int64_t value = node.attributes().integer(name);
    const std::int64_t least = name == std::string("sampling_ratio") ? 0 : 1;
    if (value >= least && value <= limit) continue;
    node.fail(std::string(name) + " is out of range", std::to_string(least) + " to 2^20",
              std::to_string(value));
  }
  if (x.shape[2] < 1 || x.shape[3] < 1 || (rois > 0 && x.shape[0] < 1)) {
    node.fail("x has no elements", "[N, C, height, width]", to_string(x.shape));
  }
  return {rois, x.shape[1], node.attributes().integer("height"),
          node.attributes().integer("width")};
}

std::vector<TensorType> infer_roi_align(const NodeView& node) {
  return {{node.input(0).dtype, pooled(node, 0)}};
}

// As in PyTorch, none flows to the regions.
Gradients roi_align_gradient(GradientContext& c) {
  return {c.g.add_node("RoiAlignGrad", {c.dy[0], c.x(0), c.x(1), c.x(2)}, c.node.attributes),
          ValueId{}, ValueId{}};
}

std::vector<TensorType> infer_roi_align_gradient(const NodeView& node) {
  require_type(node, 0, {node.input(1).dtype, pooled(node, 1)});
  return {node.input(1)};
}

}  // namespace

Operator roi_align() {
  return {.name = "RoiAlign",
          .inputs = {{"x"}, {"rois"}, {"batches"}},
          .outputs = {{"y"}},
          .attributes = roi_align_attributes(),
          .infer = infer_roi_align,
          .gradient = roi_align_gradient,
          .precision = Precision::float32,  // coordinates
          .drops_elements = true};
}

Operator roi_align_grad() {
  return {.name = "RoiAlignGrad",
          .inputs = {{"dy"}, {"x"}, {"rois"}, {"batches"}},
          .outputs = {{"dx"}},
          .attributes = roi_align_attributes(),
          .infer = infer_roi_align_gradient,
          .not_differentiable = no_second_gradient,
          .precision = Precision::float32,
          .drops_elements = true,
          .engine_only = true};
}

}  // namespace tandem::operators
