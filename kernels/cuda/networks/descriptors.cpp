// The descriptors that cuDNN's backend wants of a graph.
#include "kernels/cuda/networks/descriptors.h"

#include <array>
#include <cassert>
#include <cstring>

#include "engine/graph/error.h"

namespace tandem::cuda {

std::string failure_text(const Cudnn& cudnn, cudnnStatus_t status) {
  std::array<char, 512> said{};
  cudnn.cudnnGetLastErrorString(said.data(), said.size());
  std::string text = cudnn.cudnnGetErrorString(status);
  if (said[0] != 0) text += std::string(": ") + said.data();
  return text;
}

void check(const Cudnn& cudnn, cudnnStatus_t status, const char* doing) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw Error(ErrorKind::runtime, Diagnostic{.message = std::string("cuDNN fails while ") + doing,
                                             .got = failure_text(cudnn, status)});
}

Descriptor::Descriptor(const Cudnn& cudnn, cudnnBackendDescriptorType_t type) : cudnn_(&cudnn) {
  check(cudnn, cudnn.cudnnBackendCreateDescriptor(type, &handle_), "making a descriptor");
}

Descriptor::~Descriptor() {
  if (handle_ != nullptr) cudnn_->cudnnBackendDestroyDescriptor(handle_);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     std::int64_t count, const void* values) {
  check(*cudnn_, cudnn_->cudnnBackendSetAttribute(handle_, name, type, count, values),
        "setting an attribute");
}

void Descriptor::finalize() {
  check(*cudnn_, cudnn_->cudnnBackendFinalize(handle_), "finishing a descriptor");
}

bool Descriptor::get_values(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                            std::int64_t room, std::int64_t* count, void* to) const {
  return cudnn_->cudnnBackendGetAttribute(handle_, name, type, room, count, to) ==
         CUDNN_STATUS_SUCCESS;
}

std::int64_t Descriptor::number(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0, count = 0;
  get_values(name, CUDNN_TYPE_INT64, 1, &count, &value);
  return value;
}

namespace {

constexpr std::int64_t tensor_alignment = 16;  // bytes, of every operand

Descriptor tensor_descriptor(const Cudnn& cudnn, const GraphTensor& tensor, int index) {
  Descriptor d(cudnn, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, tensor.type);
  d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, tensor.extents);
  d.set(CUDNN_ATTR_TENSOR_STRIDES, tensor.strides);
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, GraphTensor::id_of(index));
  d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, tensor_alignment);
  if (tensor.place == TensorPlace::inside) d.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  if (tensor.place == TensorPlace::number) d.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  if (tensor.is_tiled) {
    const cudnnBackendTensorReordering_t order = CUDNN_TENSOR_REORDERING_F16x16;
    d.set(CUDNN_ATTR_TENSOR_REORDERING_MODE, CUDNN_TYPE_TENSOR_REORDERING_MODE, 1, &order);
  }
  d.finalize();
  return d;
}

Descriptor convolution_descriptor(const Cudnn& cudnn, const GraphOperation& operation) {
  Descriptor d(cudnn, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const ConvolutionSteps& steps = operation.steps;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  d.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(steps.strides.size()));
  d.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, operation.compute);
  d.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  d.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, steps.pads_begin);
  d.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, steps.pads_end);
  d.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, steps.dilations);
  d.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, steps.strides);
  d.finalize();
  return d;
}

/// How a convolution's descriptor calls its operands: the two that are read, the one that is
/// written, and the rest.
struct ConvolutionNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t a, b, y, settings, alpha, beta;
};

ConvolutionNames names_of(OperationKind kind) {
  switch (kind) {
    case OperationKind::convolution_grad_input:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case OperationKind::convolution_grad_weight:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    default:
      assert(kind == OperationKind::convolution);
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  }
}

class Maker {
 public:
  Maker(const Cudnn& cudnn, GraphDescriptors& to) : cudnn_(cudnn), to_(to) {}

  void add(const GraphOperation& operation) {
    switch (operation.kind) {
      case OperationKind::convolution:
      case OperationKind::convolution_grad_input:
      case OperationKind::convolution_grad_weight:
        add_convolution(operation);
        break;
      case OperationKind::pointwise:
        add_pointwise(operation);
        break;
      case OperationKind::reduction:
        add_reduction(operation);
        break;
      case OperationKind::product:
        add_product(operation);
        break;
      case OperationKind::reshape: {
        Descriptor d(cudnn_, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
        d.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, tensor(operation.a));
        d.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, tensor(operation.y));
        finish(std::move(d));
        break;
      }
    }
  }

 private:
  const Descriptor& tensor(TensorId id) const {
    return to_.tensors[static_cast<std::size_t>(id.index)];
  }
  const Descriptor& settings(Descriptor d) {
    to_.settings.push_back(std::move(d));
    return to_.settings.back();
  }
  void finish(Descriptor d) {
    d.finalize();
    to_.operations.push_back(std::move(d));
  }

  void add_convolution(const GraphOperation& operation) {
    const ConvolutionNames names = names_of(operation.kind);
    Descriptor d(cudnn_, names.type);
    const float alpha = 1, beta = 0;
    d.set(names.a, tensor(operation.a));
    d.set(names.b, tensor(operation.b));
    d.set(names.y, tensor(operation.y));
    d.set(names.settings, settings(convolution_descriptor(cudnn_, operation)));
    d.set(names.alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
    d.set(names.beta, CUDNN_TYPE_FLOAT, 1, &beta);
    finish(std::move(d));
  }

  void add_pointwise(const GraphOperation& operation) {
    Descriptor mode(cudnn_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    mode.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &operation.pointwise);
    mode.set(CUDNN_ATTR_POINTWISE_MATH_PREC, operation.compute);
    if (operation.axis >= 0) mode.set(CUDNN_ATTR_POINTWISE_AXIS, std::int64_t{operation.axis});
    mode.finalize();
    Descriptor d(cudnn_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    d.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, settings(std::move(mode)));
    d.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensor(operation.a));
    if (operation.b) d.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensor(operation.b));
    if (operation.select) d.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, tensor(operation.select));
    d.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensor(operation.y));
    finish(std::move(d));
  }

  void add_reduction(const GraphOperation& operation) {
    Descriptor mode(cudnn_, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    mode.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1,
             &operation.reduction);
    mode.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, operation.compute);
    mode.finalize();
    Descriptor d(cudnn_, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    d.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, settings(std::move(mode)));
    d.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, tensor(operation.a));
    d.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensor(operation.y));
    finish(std::move(d));
  }

  void add_product(const GraphOperation& operation) {
    Descriptor mode(cudnn_, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    mode.set(CUDNN_ATTR_MATMUL_COMP_TYPE, operation.compute);
    mode.finalize();
    Descriptor d(cudnn_, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    d.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, settings(std::move(mode)));
    d.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensor(operation.a));
    d.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensor(operation.b));
    d.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, tensor(operation.y));
    finish(std::move(d));
  }

  const Cudnn& cudnn_;
  GraphDescriptors& to_;
};

}  // namespace

GraphDescriptors::GraphDescriptors(const Cudnn& cudnn, const NetworkGraph& from,
                                   cudnnHandle_t handle) {
  for (std::size_t i = 0; i < from.tensors().size(); ++i) {
    tensors.push_back(tensor_descriptor(cudnn, from.tensors()[i], static_cast<int>(i)));
  }
  Maker maker(cudnn, *this);
  for (const GraphOperation& operation : from.operations()) maker.add(operation);
  std::vector<cudnnBackendDescriptor_t> all;
  for (const Descriptor& operation : operations) all.push_back(operation.get());
  graph = Descriptor(cudnn, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (handle != nullptr) {
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  }
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<std::int64_t>(all.size()), all.data());
  graph.finalize();
}

}  // namespace tandem::cuda
