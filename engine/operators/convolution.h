// What Conv, its two gradient operators and ConvFused have in common.
#pragma once

#include "engine/operators/network_checks.h"
#include "engine/operators/window.h"

namespace tandem::operators {

/// Attributes of every convolution; `with_shape` adds the one of the gradient operators.
std::vector<AttributeSpec> convolution_attributes(bool with_shape);

/// The shape [N, M, spatial...] that Conv gives for x [N, C, spatial...] and weight [M, C / group,
/// k...]. Throws through `fail` where the two, the group or the windows do not fit.
Shape convolution_shape(const NodeView& view, const Shape& x, const Shape& weight);

/// 2 per multiply-add; y has Conv's output shape.
double convolution_flops(const Shape& y, const Shape& weight);

/// The attributes that the node shares with the other convolutions, with `shape` where one is
/// given.
Attributes convolution_attributes_of(const Node& node, const Shape* shape = nullptr);

}  // namespace tandem::operators
