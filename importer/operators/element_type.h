// Element types that attributes name by ONNX's numbers.
#pragma once

#include "importer/file/tensor_data.h"
#include "importer/node_context.h"

namespace tandem::importer::operators {

/// The type in the graph for that number; refused where the engine has none.
inline DType element_type(NodeContext& node, std::int64_t type) {
  const auto number = static_cast<std::int32_t>(type);
  const auto dtype = dtype_from_onnx(number);
  if (!dtype || type != number) {
    node.unsupported("element type " + onnx_type_name(number) + " is not supported");
  }
  return node.session().type_in_graph(*dtype);
}

/// The element type for a node that makes numbers by itself: refuses 8-bit floats, which are none.
inline DType number_type(NodeContext& node, std::int64_t type) {
  const DType dtype = element_type(node, type);
  if (is_float8(dtype))
    node.unsupported("element type " + onnx_type_name(static_cast<std::int32_t>(type)) +
                     " is not supported");
  return dtype;
}

}  // namespace tandem::importer::operators
