// RoiAlign and MaxRoiPool.

#include "importer/node_context.h"

namespace tandem::importer::operators {

// Half a pixel is taken off by default since version 16, and never before.
void roi_align(NodeContext& node) {
  const std::string coordinates = node.version() < 16
                                      ? "output_half_pixel"
                                      : node.text("coordinate_transformation_mode", "half_pixel");
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel") {
    node.fail("coordinate_transformation_mode", "half_pixel or output_half_pixel", coordinates);
  }
  const DType dtype = node.widen(node.in(0)).type.dtype;
  const Term y = node.make("RoiAlign",
                           {node.cast(node.in(0), dtype), node.cast(node.in(1), dtype), node.in(2)},
                           {{"height", node.integer("output_height", 1)},
                            {"width", node.integer("output_width", 1)},
                            {"mode", node.text("mode", "avg")},
                            {"sampling_ratio", node.integer("sampling_ratio", 0)},
                            {"spatial_scale", node.number("spatial_scale", 1)},
                            {"half_pixel", std::int64_t{coordinates == "half_pixel"}}});
  node.out(0, node.cast(y, node.dtype(0)));
}

// rois [R, 5]: the batch, then the corners.
void max_roi_pool(NodeContext& node) {
  const Ints shape = node.integers("pooled_shape", {});
  if (shape.size() != 2) node.fail("pooled_shape", "2 numbers", to_string(Shape(shape)));
  const DType dtype = node.widen(node.in(0)).type.dtype;
  const Term y =
      node.make("MaxRoiPool", {node.cast(node.in(0), dtype), node.cast(node.in(1), dtype)},
                {{"height", shape[0]},
                 {"width", shape[1]},
                 {"spatial_scale", node.number("spatial_scale", 1)}});
  node.out(0, node.cast(y, node.dtype(0)));
}

}  // namespace tandem::importer::operators
