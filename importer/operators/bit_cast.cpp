// BitCast.
#include "importer/file/tensor_data.h"
#include "importer/node_context.h"

namespace tandem::importer::operators {

void bit_cast(NodeContext& node) {
  const std::int64_t type = node.integer("to");
  const auto dtype = dtype_from_onnx(static_cast<std::int32_t>(type));
  if (!dtype || type != static_cast<std::int32_t>(type)) {
    node.unsupported("element type " + onnx_type_name(static_cast<std::int32_t>(type)) +
                     " is not supported");
  }
  node.out(0, node.make("BitCast", {node.in(0)}, {{"to", std::string(name_of(*dtype))}}));
}

}  // namespace tandem::importer::operators
