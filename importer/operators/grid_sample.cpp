// GridSample of every version: names of the modes, only images before version 20.
#include "importer/node_context.h"

namespace tandem::importer::operators {

void grid_sample(NodeContext& node) {
  std::string mode = node.text("mode", node.version() < 20 ? "bilinear" : "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  const DType dtype = node.dtype(0) == DType::float64 ? DType::float64 : DType::float32;
  if (!is_float(node.dtype(0))) {
    node.unsupported("element type " + std::string(name_of(node.dtype(0))) + " is not supported");
  }
  const Term y =
      node.make("GridSample", {node.cast(node.in(0), dtype), node.cast(node.in(1), dtype)},
                {{"mode", mode},
                 {"padding_mode", node.text("padding_mode", "zeros")},
                 {"align_corners", std::int64_t{node.flag("align_corners", false)}}});
  node.out(0, node.cast(y, node.dtype(0)));
}

}  // namespace tandem::importer::operators
