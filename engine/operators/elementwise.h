// What the element-wise operators share: their frame, and the gradient of two broadcast operands.
#pragma once

#include "engine/graph/builder.h"
#include "engine/operators/broadcast.h"
#include "engine/operators/checks.h"
#include "engine/operators/operator.h"

namespace tandem {

inline std::vector<TensorType> infer_float(const NodeView& node) {
  require_float(node, 0);
  return {node.input(0)};
}

inline std::vector<TensorType> infer_number(const NodeView& node) {
  require_number(node, 0);
  return {node.input(0)};
}

/// x → y of one type, element by element.
inline Operator unary_operator(std::string name, ScalarFunction scalar,
                               std::vector<TensorType> (*infer)(const NodeView&),
                               Gradients (*gradient)(GradientContext&)) {
  Operator op;
  op.name = std::move(name);
  op.inputs = {{"x"}};
  op.outputs = {{"y"}};
  op.infer = infer;
  op.gradient = gradient;
  op.scalar = scalar;
  return op;
}

inline std::vector<TensorType> infer_broadcast_numbers(const NodeView& node) {
  require_number(node, 0);
  require_same_dtype(node, 0, 1);
  return {{node.input(0).dtype, broadcast_inputs(node, 0, 1)}};
}

/// (a, b) → y with broadcasting.
inline Operator binary_operator(std::string name, ScalarFunction scalar,
                                std::vector<TensorType> (*infer)(const NodeView&),
                                Gradients (*gradient)(GradientContext&)) {
  Operator op;
  op.name = std::move(name);
  op.inputs = {{"a"}, {"b"}};
  op.outputs = {{"y"}};
  op.infer = infer;
  op.gradient = gradient;
  op.scalar = scalar;
  return op;
}

/// A reason for Operator::not_differentiable that gradient operators share.
inline constexpr const char* no_second_gradient =
    "part of a gradient; gradients of gradients are not offered";

}  // namespace tandem
