// Convolutions with their epilogues as cuDNN graphs.
#include "kernels/cuda/networks/convolution_graph.h"

#include <cassert>

namespace tandem::cuda {
namespace {

/// cuDNN wants two spatial axes at least: a line is an image of one row.
Shape widened(Shape shape) {
  if (shape.size() == 3) shape.insert(shape.begin() + 2, 1);
  return shape;
}

ConvolutionSteps widened(ConvolutionSteps steps) {
  if (steps.strides.size() != 1) return steps;
  steps.strides.insert(steps.strides.begin(), 1);
  steps.dilations.insert(steps.dilations.begin(), 1);
  steps.pads_begin.insert(steps.pads_begin.begin(), 0);
  steps.pads_end.insert(steps.pads_end.begin(), 0);
  return steps;
}

cudnnPointwiseMode_t mode_of(Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return CUDNN_POINTWISE_GELU_FWD;
    case Activation::gelu_tanh:
      return CUDNN_POINTWISE_GELU_APPROX_TANH_FWD;
    case Activation::relu:
      return CUDNN_POINTWISE_RELU_FWD;
    case Activation::none:
    case Activation::relu_grad:
      break;
  }
  assert(false && "not an activation of a convolution");
  return CUDNN_POINTWISE_IDENTITY;
}

}  // namespace

NetworkGraph convolution_graph(const ConvolutionShape& shape) {
  NetworkGraph g;
  const cudnnDataType_t type = cudnn_type(shape.dtype);
  const auto strides = [&](const Shape& extents) {
    return (shape.is_channels_last ? channels_last(extents) : row_major(extents)).strides;
  };
  const auto tensor = [&](const Shape& narrow) {
    const Shape extents = widened(narrow);
    return g.tensor(type, extents, strides(extents));
  };
  const ConvolutionSteps steps = widened(shape.steps);
  switch (shape.pass) {
    case ConvolutionPass::input: {
      const TensorId dy = tensor(shape.y), weight = tensor(shape.weight), dx = tensor(shape.x);
      g.convolution_grad_input(steps, dy, weight, dx);
      return g;
    }
    case ConvolutionPass::weight: {
      const TensorId x = tensor(shape.x), dy = tensor(shape.y), dweight = tensor(shape.weight);
      g.convolution_grad_weight(steps, x, dy, dweight);
      return g;
    }
    case ConvolutionPass::forward:
      break;
  }
  const TensorId x = tensor(shape.x), weight = tensor(shape.weight);
  const Shape extents = widened(shape.y);
  Shape bias_extents(extents.size(), 1);
  bias_extents[1] = extents[1];
  const TensorId bias = shape.has_bias ? tensor(bias_extents) : TensorId{};
  const TensorId residual = shape.has_residual ? tensor(shape.y) : TensorId{};
  const TensorId y = tensor(shape.y);

  int left =
      int{shape.has_bias} + int{shape.has_residual} + int{shape.activation != Activation::none};
  // What is not the end stays in float32.
  const auto result = [&] {
    return left == 0 ? y : g.inside(CUDNN_DATA_FLOAT, extents, strides(extents));
  };
  TensorId value = result();
  g.convolution(steps, x, weight, value);
  for (const TensorId added : {residual, bias}) {
    if (!added) continue;
    --left;
    const TensorId sum = result();
    g.pointwise(CUDNN_POINTWISE_ADD, value, added, sum);
    value = sum;
  }
  if (shape.activation != Activation::none) g.pointwise(mode_of(shape.activation), value, y);
  return g;
}

}  // namespace tandem::cuda
