// The kernels of MaxPool, AveragePool and their gradients.
#include "kernels/cuda/networks/pooling.h"

#include <string_view>

#include "engine/operators/operator.h"
#include "kernels/cuda/networks/networks.h"

namespace tandem::cuda {
namespace {

PoolingKind kind_of(const KernelRequest& request) {
  const std::string_view op = request.node->op->name;
  if (op == "MaxPool") return PoolingKind::maximum;
  if (op == "MaxPoolGrad") return PoolingKind::maximum_gradient;
  if (op == "AveragePool") return PoolingKind::average;
  return PoolingKind::average_gradient;
}

bool wants_indices(const KernelRequest& request) {
  return request.outputs.size() > 1 && request.outputs[1].present;
}

std::optional<std::string> refuse(const KernelRequest& request) {
  const PoolingKind kind = kind_of(request);
  const TensorType& type = request.inputs[0].type;
  const bool bytes =
      kind == PoolingKind::maximum && (type.dtype == DType::int8 || type.dtype == DType::uint8);
  if (!is_short_float(type.dtype) && !bytes) return "takes no " + std::string(name_of(type.dtype));
  for (const std::vector<Operand>* operands : {&request.inputs, &request.outputs}) {
    for (const Operand& operand : *operands) {
      for (std::size_t i = 2; i < operand.type.rank(); ++i) {
        if (operand.type.shape[i] > 0x7fffffff) return "an axis of more than 2^31 elements";
      }
    }
  }
  return std::nullopt;
}

std::vector<Proposal> propose(const KernelRequest& request) {
  std::vector<Proposal> proposals;
  for (const auto kind :
       {LayoutConstraint::Kind::channels_last, LayoutConstraint::Kind::row_major}) {
    const LayoutConstraint map{.kind = kind, .layout = {}};
    proposals.push_back({.inputs = std::vector<LayoutConstraint>(request.inputs.size(), map),
                         .outputs = std::vector<LayoutConstraint>(request.outputs.size(), map)});
  }
  return proposals;
}

PoolingMap map_of(const Operand& operand) {
  PoolingMap map;
  const Shape& shape = operand.type.shape;
  map.image = operand.layout.strides[0];
  map.channel = operand.layout.strides[1];
  for (std::size_t i = 2; i < shape.size(); ++i) {
    map.axis[i + 3 - shape.size()] = operand.layout.strides[i];
  }
  return map;
}

class PoolingKernel final : public PreparedKernel {
 public:
  PoolingKernel(const KernelRequest& request, Networks networks) : networks_(std::move(networks)) {
    Pooling& p = pooling_;
    p.kind = kind_of(request);
    p.dtype = request.inputs[0].type.dtype;
    const Operand *large = &request.inputs[0], *small = &request.outputs[0];
    if (p.kind == PoolingKind::maximum_gradient) small = &request.inputs[1];
    if (p.kind == PoolingKind::average_gradient) std::swap(large, small);
    set_windows(request.attributes(), large->type.shape, small->type.shape);
    p.images = large->type.shape[0];
    p.channels = large->type.shape[1];
    switch (p.kind) {
      case PoolingKind::maximum:
        p.column_major = request.attributes().flag("storage_order");
        wants_indices_ = wants_indices(request);
        if (wants_indices_) p.indices = map_of(request.outputs[1]);
        [[fallthrough]];
      case PoolingKind::average:
        p.x = map_of(*large);
        p.y = map_of(*small);
        break;
      case PoolingKind::maximum_gradient:
        p.x = map_of(request.inputs[0]);
        p.y = map_of(request.inputs[1]);
        p.dy = map_of(request.inputs[2]);
        p.dx = map_of(request.outputs[0]);
        break;
      case PoolingKind::average_gradient:
        p.dy = map_of(*small);
        p.dx = map_of(*large);
        break;
    }
    p.channels_inside = is_channels_last(large->layout, large->type.shape) &&
                        is_channels_last(small->layout, small->type.shape);
    for (const Operand& operand : request.inputs) {
      p.channels_inside &= is_channels_last(operand.layout, operand.type.shape);
    }
  }

  void run(const KernelArguments& a) noexcept override {
    PoolingAddresses at;
    switch (pooling_.kind) {
      case PoolingKind::maximum:
        at.indices = wants_indices_ ? static_cast<std::int64_t*>(a.outputs[1]) : nullptr;
        [[fallthrough]];
      case PoolingKind::average:
        at.x = a.inputs[0];
        at.y = a.outputs[0];
        break;
      case PoolingKind::maximum_gradient:
        at.x = a.inputs[0];
        at.y_read = a.inputs[1];
        at.dy = a.inputs[2];
        at.dx = a.outputs[0];
        break;
      case PoolingKind::average_gradient:
        at.dy = a.inputs[0];
        at.dx = a.outputs[0];
        break;
    }
    if (at.y == nullptr && at.dx == nullptr && at.indices == nullptr) return;
    run_pooling(networks_->gpu(), pooling_, at, a.queue);
  }

 private:
  void set_windows(const Attributes& attributes, const Shape& x, const Shape& y) {
    const std::size_t spatial = x.size() - 2;
    const Ints &kernel = attributes.integers("kernel_shape"),
               &strides = attributes.integers("strides"),
               &dilations = attributes.integers("dilations"), &pads = attributes.integers("pads");
    for (std::size_t i = 0; i < spatial; ++i) {
      pooling_.axes[i + 3 - spatial] = {.in = static_cast<int>(x[i + 2]),
                                        .out = static_cast<int>(y[i + 2]),
                                        .window = static_cast<int>(kernel[i]),
                                        .stride = static_cast<int>(strides[i]),
                                        .dilation = static_cast<int>(dilations[i]),
                                        .pad_begin = static_cast<int>(pads[i]),
                                        .pad_end = static_cast<int>(pads[i + spatial])};
    }
    if (pooling_.kind == PoolingKind::average || pooling_.kind == PoolingKind::average_gradient) {
      pooling_.count_padding = attributes.flag("count_include_pad");
    }
  }

  Networks networks_;
  Pooling pooling_;
  bool wants_indices_ = false;
};

}  // namespace

void add_poolings(KernelList& list, const Networks& networks) {
  for (const char* op : {"MaxPool", "MaxPoolGrad", "AveragePool", "AveragePoolGrad"}) {
    list.push_back({"cuda.pool", op, refuse, propose, makes<PoolingKernel>(networks)});
  }
}

}  // namespace tandem::cuda
