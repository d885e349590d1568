// Cast and CastLike.
#include "importer/operators/element_type.h"
#include "importer/operators/float8.h"

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

// `saturate` and `round_mode` are read only for 8-bit floats.
void cast_as(NodeContext& node, DType dtype) {
  const bool saturate = node.flag("saturate", true);
  const std::string rounding = node.text("round_mode", "up");
  Term x = node.in(0);
  if (is_float8(x.type.dtype) && x.type.dtype != dtype) x = from_float8(node, x);
  if (is_float8(dtype) && x.type.dtype != dtype) {
    node.out(0, to_float8(node, x, dtype, saturate, rounding));
  } else if (is_float8(dtype)) {
    node.out(0, node.make("Identity", {x}));
  } else {
    node.out(0, node.make("Cast", {x}, {{"to", std::string(name_of(dtype))}}));
  }
}

}  // namespace

void cast(NodeContext& node) { cast_as(node, cast_target(node)); }
void cast_like(NodeContext& node) { cast_as(node, node.dtype(1)); }

}  // namespace tandem::importer::operators
