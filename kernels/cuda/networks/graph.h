// A graph of cuDNN operations as plain data: tensors and what is computed of them. Kernels and the
// checks without a GPU build it by the same functions; plans.h makes plans of it.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/attributes.h"
#include "engine/graph/types.h"

namespace tandem::cuda {

enum class TensorPlace : std::uint8_t {
  memory,  // in the GPU's memory
  inside,  // between two operations, in no memory
  number,  // one float32 that the host passes by value
};

/// Identifies a tensor of a NetworkGraph.
struct TensorId {
  int index = -1;
  explicit operator bool() const { return index >= 0; }
};

struct GraphTensor {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Shape extents;
  std::vector<std::int64_t> strides;  // in elements
  TensorPlace place = TensorPlace::memory;
  float number = 0;
  bool is_tiled = false;  // a float32 sum in an order of cuDNN's own

  /// cuDNN's unique id of the tensor with that index.
  static std::int64_t id_of(int index) { return index + 1; }
};

enum class OperationKind : std::uint8_t {
  convolution,
  convolution_grad_input,
  convolution_grad_weight,
  pointwise,
  reduction,
  product,
  reshape,
};

/// Steps of the windows along each spatial axis.
struct ConvolutionSteps {
  Ints strides, dilations, pads_begin, pads_end;
};

struct GraphOperation {
  OperationKind kind = OperationKind::pointwise;
  cudnnPointwiseMode_t pointwise = CUDNN_POINTWISE_IDENTITY;
  cudnnReduceTensorOp_t reduction = CUDNN_REDUCE_TENSOR_ADD;
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  int axis = -1;  // for CUDNN_POINTWISE_GEN_INDEX
  ConvolutionSteps steps;
  // Convolutions: the two that are read. Pointwise: operands; `select` chooses a where it is true.
  TensorId a, b, select;
  TensorId y;  // the result
};

class NetworkGraph {
 public:
  TensorId tensor(cudnnDataType_t type, const Shape& extents,
                  const std::vector<std::int64_t>& strides);
  TensorId inside(cudnnDataType_t type, const Shape& extents,
                  const std::vector<std::int64_t>& strides);
  /// Row-major.
  TensorId inside(cudnnDataType_t type, const Shape& extents);
  TensorId number(float value, std::size_t rank);
  /// float32 in memory, zero before the plan runs, that a pointwise identity reads afterwards.
  TensorId tiled_sum(const Shape& extents);

  void convolution(const ConvolutionSteps& steps, TensorId x, TensorId weight, TensorId y);
  void convolution_grad_input(const ConvolutionSteps& steps, TensorId dy, TensorId weight,
                              TensorId dx);
  void convolution_grad_weight(const ConvolutionSteps& steps, TensorId x, TensorId dy,
                               TensorId dweight);
  void pointwise(cudnnPointwiseMode_t mode, TensorId a, TensorId b, TensorId y,
                 cudnnDataType_t compute = CUDNN_DATA_FLOAT);
  void pointwise(cudnnPointwiseMode_t mode, TensorId a, TensorId y) { pointwise(mode, a, {}, y); }
  /// y = the index of each element along an axis; x gives the shape.
  void index(int axis, TensorId x, TensorId y);
  /// y = condition ? a : b
  void select(TensorId condition, TensorId a, TensorId b, TensorId y);
  /// Reduces over the axes where y has extent 1 and x has not.
  void reduce(cudnnReduceTensorOp_t mode, TensorId x, TensorId y);
  /// Multiplies matrices in the last two axes.
  void product(TensorId a, TensorId b, TensorId y);
  /// y has the elements of x under other strides.
  void reshape(TensorId x, TensorId y);

  const std::vector<GraphTensor>& tensors() const { return tensors_; }
  const std::vector<GraphOperation>& operations() const { return operations_; }
  const GraphTensor& operator[](TensorId id) const {
    return tensors_[static_cast<std::size_t>(id.index)];
  }
  /// The indices of tensors in memory, in the order in which they were added: that of the addresses
  /// that a plan of the graph takes.
  std::vector<int> memory_tensors() const;
  /// Equal only for equal graphs.
  std::string key() const;

 private:
  TensorId add(GraphTensor tensor);
  void add(OperationKind kind, const ConvolutionSteps& steps, TensorId a, TensorId b, TensorId y);

  std::vector<GraphTensor> tensors_;
  std::vector<GraphOperation> operations_;
};

/// float32, float16 and bfloat16; asserts.
cudnnDataType_t cudnn_type(DType dtype);
std::string name_of(cudnnDataType_t type);

}  // namespace tandem::cuda
