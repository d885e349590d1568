// 8-bit floats from numbers and back: the two operators that read or make them (float8.h).
//
//   FromFloat8  y = the numbers of x, exactly, in float32
//   ToFloat8    y = the codes of x in the type `to`; `saturate` and `rounding` as in ONNX's Cast
//
// Gradients flow only through types that are computed with. Import writes the two as a rounding
// that lets gradients pass (importer/operators/float8.h).
#include "engine/graph/float8.h"

#include "engine/operators/checks.h"
#include "engine/operators/operator.h"

namespace tandem {
namespace operators {
namespace {

constexpr const char* no_float8_gradient = "8-bit floats are storage";

std::vector<TensorType> infer_from_float8(const NodeView& node) {
  if (!is_float8(node.input(0).dtype)) {
    node.fail("element type of 'x'", "an 8-bit float", std::string(name_of(node.input(0).dtype)));
  }
  return {{DType::float32, node.input(0).shape}};
}

std::vector<TensorType> infer_to_float8(const NodeView& node) {
  require_dtype(node, 0, DType::float32);
  const std::string& to = node.attributes().text("to");
  const auto dtype = dtype_from_name(to);
  if (!dtype || !is_float8(*dtype))
    node.fail("attribute 'to'", "the name of an 8-bit float", "\"" + to + "\"");
  const std::string& rounding = node.attributes().text("rounding");
  if (!float8_rounding(rounding))
    node.fail("attribute 'rounding'", "up, down or nearest", "\"" + rounding + "\"");
  return {{*dtype, node.input(0).shape}};
}

}  // namespace

void add_float8(OperatorSet& set) {
  set.add({.name = "FromFloat8",
           .inputs = {{"x"}},
           .outputs = {{"y"}},
           .infer = infer_from_float8,
           .not_differentiable = no_float8_gradient,
           .precision = Precision::float32,
           .takes_float8 = true});
  set.add({.name = "ToFloat8",
           .inputs = {{"x"}},
           .outputs = {{"y"}},
           .attributes = {{"to", std::string(), true},
                          {"saturate", std::int64_t{1}},
                          {"rounding", std::string("up")}},
           .infer = infer_to_float8,
           .not_differentiable = no_float8_gradient,
           .precision = Precision::float32});
}

}  // namespace operators
}  // namespace tandem
