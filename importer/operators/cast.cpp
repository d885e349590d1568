// Cast and CastLike.
#include "importer/operators/element_type.h"

namespace tandem::importer::operators {
namespace {

DType cast_target(NodeContext& node) {
  const onnx::AttributeProto* to = node.attribute("to");
  if (to == nullptr) node.fail("attribute 'to' is missing");
  std::int64_t type = to->i();
  if (node.version() < 6) {
    onnx::TensorProto_DataType named{};
    if (!onnx::TensorProto_DataType_Parse(to->s(), &named))
      node.fail("attribute 'to'", "a type", to->s());
    type = named;
  }
  return element_type(node, type);
}

void cast_as(NodeContext& node, DType dtype) {
  node.out(0, node.make("Cast", {node.in(0)}, {{"to", std::string(name_of(dtype))}}));
}

}  // namespace

void cast(NodeContext& node) { cast_as(node, cast_target(node)); }
void cast_like(NodeContext& node) { cast_as(node, node.dtype(1)); }

}  // namespace tandem::importer::operators
