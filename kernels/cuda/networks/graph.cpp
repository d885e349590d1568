// Graphs of cuDNN operations as plain data.
#include "kernels/cuda/networks/graph.h"

#include <cassert>
#include <cstring>

namespace tandem::cuda {

TensorId NetworkGraph::add(GraphTensor tensor) {
  assert(tensor.extents.size() == tensor.strides.size());
  tensors_.push_back(std::move(tensor));
  return {static_cast<int>(tensors_.size()) - 1};
}

TensorId NetworkGraph::tensor(cudnnDataType_t type, const Shape& extents,
                              const std::vector<std::int64_t>& strides) {
  return add({.type = type, .extents = extents, .strides = strides});
}

TensorId NetworkGraph::inside(cudnnDataType_t type, const Shape& extents,
                              const std::vector<std::int64_t>& strides) {
  return add({.type = type, .extents = extents, .strides = strides, .place = TensorPlace::inside});
}

TensorId NetworkGraph::inside(cudnnDataType_t type, const Shape& extents) {
  return inside(type, extents, row_major(extents).strides);
}

TensorId NetworkGraph::number(float value, std::size_t rank) {
  return add({.extents = Shape(rank, 1),
              .strides = std::vector<std::int64_t>(rank, 1),
              .place = TensorPlace::number,
              .number = value});
}

TensorId NetworkGraph::tiled_sum(const Shape& extents) {
  return add({.extents = extents, .strides = row_major(extents).strides, .is_tiled = true});
}

void NetworkGraph::add(OperationKind kind, const ConvolutionSteps& steps, TensorId a, TensorId b,
                       TensorId y) {
  operations_.push_back({.kind = kind, .steps = steps, .a = a, .b = b, .y = y});
}

void NetworkGraph::convolution(const ConvolutionSteps& steps, TensorId x, TensorId weight,
                               TensorId y) {
  add(OperationKind::convolution, steps, x, weight, y);
}
void NetworkGraph::convolution_grad_input(const ConvolutionSteps& steps, TensorId dy,
                                          TensorId weight, TensorId dx) {
  add(OperationKind::convolution_grad_input, steps, dy, weight, dx);
}
void NetworkGraph::convolution_grad_weight(const ConvolutionSteps& steps, TensorId x, TensorId dy,
                                           TensorId dweight) {
  add(OperationKind::convolution_grad_weight, steps, x, dy, dweight);
}

void NetworkGraph::pointwise(cudnnPointwiseMode_t mode, TensorId a, TensorId b, TensorId y,
                             cudnnDataType_t compute) {
  operations_.push_back({.kind = OperationKind::pointwise,
                         .pointwise = mode,
                         .compute = compute,
                         .a = a,
                         .b = b,
                         .y = y});
}

void NetworkGraph::index(int axis, TensorId x, TensorId y) {
  operations_.push_back({.kind = OperationKind::pointwise,
                         .pointwise = CUDNN_POINTWISE_GEN_INDEX,
                         .compute = CUDNN_DATA_INT32,
                         .axis = axis,
                         .a = x,
                         .y = y});
}

void NetworkGraph::select(TensorId condition, TensorId a, TensorId b, TensorId y) {
  operations_.push_back({.kind = OperationKind::pointwise,
                         .pointwise = CUDNN_POINTWISE_BINARY_SELECT,
                         .a = a,
                         .b = b,
                         .select = condition,
                         .y = y});
}

void NetworkGraph::reduce(cudnnReduceTensorOp_t mode, TensorId x, TensorId y) {
  operations_.push_back({.kind = OperationKind::reduction, .reduction = mode, .a = x, .y = y});
}
void NetworkGraph::product(TensorId a, TensorId b, TensorId y) {
  operations_.push_back({.kind = OperationKind::product, .a = a, .b = b, .y = y});
}
void NetworkGraph::reshape(TensorId x, TensorId y) {
  operations_.push_back({.kind = OperationKind::reshape, .a = x, .y = y});
}

std::vector<int> NetworkGraph::memory_tensors() const {
  std::vector<int> indices;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].place == TensorPlace::memory) indices.push_back(static_cast<int>(i));
  }
  return indices;
}

std::string NetworkGraph::key() const {
  std::string key;
  const auto number = [&](std::int64_t value) { key += std::to_string(value) + ' '; };
  const auto numbers = [&](const std::vector<std::int64_t>& values) {
    for (std::int64_t value : values) number(value);
    key += "; ";
  };
  for (const GraphTensor& tensor : tensors_) {
    key += 't';
    number(tensor.type);
    number(static_cast<int>(tensor.place));
    number(tensor.is_tiled);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &tensor.number, sizeof bits);
    number(bits);
    numbers(tensor.extents);
    numbers(tensor.strides);
  }
  for (const GraphOperation& operation : operations_) {
    key += 'o';
    for (const int value : {static_cast<int>(operation.kind), static_cast<int>(operation.pointwise),
                            static_cast<int>(operation.reduction),
                            static_cast<int>(operation.compute), operation.axis, operation.a.index,
                            operation.b.index, operation.select.index, operation.y.index}) {
      number(value);
    }
    for (const Ints* steps : {&operation.steps.strides, &operation.steps.dilations,
                              &operation.steps.pads_begin, &operation.steps.pads_end}) {
      numbers(*steps);
    }
  }
  return key;
}

cudnnDataType_t cudnn_type(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return CUDNN_DATA_HALF;
    case DType::bfloat16:
      return CUDNN_DATA_BFLOAT16;
    default:
      assert(dtype == DType::float32);
      return CUDNN_DATA_FLOAT;
  }
}

std::string name_of(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return "float32";
    case CUDNN_DATA_HALF:
      return "float16";
    case CUDNN_DATA_BFLOAT16:
      return "bfloat16";
    default:
      return "type " + std::to_string(type);
  }
}

}  // namespace tandem::cuda
