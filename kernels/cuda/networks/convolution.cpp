// The kernels of Conv, ConvFused, ConvGradInput and ConvGradWeight: by cuDNN, else by definition.
#include <algorithm>
#include <string_view>

#include "engine/operators/operator.h"
#include "kernels/cuda/launching.h"
#include "kernels/cuda/networks/convolution_graph.h"
#include "kernels/cuda/networks/networks.h"
#include "kernels/cuda/networks/plain_convolution.h"

namespace tandem::cuda {
namespace {

constexpr const char* ops[] = {"Conv", "ConvFused", "ConvGradInput", "ConvGradWeight"};

/// The operands of a convolution, whichever of the three is the result.
struct Operands {
  ConvolutionPass pass = ConvolutionPass::forward;
  const Operand *x = nullptr, *weight = nullptr, *y = nullptr;

  explicit Operands(const KernelRequest& r) {
    const std::string_view op = r.node->op->name;
    if (op == "ConvGradInput") {
      pass = ConvolutionPass::input;
      y = &r.inputs[0], weight = &r.inputs[1], x = &r.outputs[0];
    } else if (op == "ConvGradWeight") {
      pass = ConvolutionPass::weight;
      x = &r.inputs[0], y = &r.inputs[1], weight = &r.outputs[0];
    } else {
      x = &r.inputs[0], weight = &r.inputs[1], y = &r.outputs[0];
    }
  }
};

ConvolutionShape shape_of(const KernelRequest& r, bool is_channels_last) {
  const Operands o(r);
  const Attributes& attributes = r.attributes();
  ConvolutionShape c;
  c.pass = o.pass;
  c.dtype = o.x->type.dtype;
  c.x = o.x->type.shape, c.weight = o.weight->type.shape, c.y = o.y->type.shape;
  c.steps.strides = attributes.integers("strides");
  c.steps.dilations = attributes.integers("dilations");
  const Ints& pads = attributes.integers("pads");
  const auto half = static_cast<std::ptrdiff_t>(pads.size() / 2);
  c.steps.pads_begin.assign(pads.begin(), pads.begin() + half);
  c.steps.pads_end.assign(pads.begin() + half, pads.end());
  if (c.pass == ConvolutionPass::forward) {
    c.has_bias = r.is_present(2);
    c.has_residual = r.is_present(3);
    if (r.node->op->role == Role::fused_convolution) c.activation = activation_of(attributes);
  }
  c.is_channels_last = is_channels_last;
  return c;
}

bool is_empty(const KernelRequest& r) {
  const auto empty = [](const Operand& o) { return o.present && o.type.elements() == 0; };
  return std::any_of(r.inputs.begin(), r.inputs.end(), empty) ||
         std::any_of(r.outputs.begin(), r.outputs.end(), empty);
}

/// Engines that compute float32 without tensor cores lay maps out by planes inside.
bool prefers_planes(const NetworkGpu& networks, const KernelRequest& r) {
  return r.inputs[0].type.dtype == DType::float32 && !networks.gpu().allow_tf32;
}

std::optional<std::string> refuse(NetworkGpu& networks, const KernelRequest& r) {
  if (auto reason = refuse_other_types(r)) return reason;
  if (is_empty(r)) return "an operand is empty";
  const EngineRules rules = networks.rules(r.deterministic);
  for (const bool last : {true, false}) {
    if (auto reason = networks.refuse(convolution_graph(shape_of(r, last)), rules)) return reason;
  }
  return std::nullopt;
}

Proposal proposal(const KernelRequest& r, LayoutConstraint::Kind kind) {
  const LayoutConstraint map{.kind = kind, .layout = {}};
  Proposal p{.inputs = std::vector<LayoutConstraint>(r.inputs.size(), map), .outputs = {map}};
  if (Operands(r).pass == ConvolutionPass::forward && p.inputs.size() > 2) {
    p.inputs[2] = {.kind = LayoutConstraint::Kind::row_major, .layout = {}};  // bias
  }
  return p;
}

std::vector<Proposal> propose(const NetworkGpu& networks, const KernelRequest& r) {
  std::vector<Proposal> proposals{proposal(r, LayoutConstraint::Kind::channels_last),
                                  proposal(r, LayoutConstraint::Kind::row_major)};
  if (prefers_planes(networks, r)) std::swap(proposals[0], proposals[1]);
  return proposals;
}

bool is_all_channels_last(const KernelRequest& r) {
  const Operands o(r);
  return is_channels_last(o.x->layout, o.x->type.shape) &&
         is_channels_last(o.weight->layout, o.weight->type.shape) &&
         is_channels_last(o.y->layout, o.y->type.shape);
}

class CudnnConvolution final : public PreparedKernel {
 public:
  CudnnConvolution(const KernelRequest& r, const Networks& networks)
      : CudnnConvolution(shape_of(r, is_all_channels_last(r)), networks,
                         networks->rules(r.deterministic)) {}

  void run(const KernelArguments& a) noexcept override {
    const void* addresses[PlanRun::most_tensors];
    int count = 0;
    addresses[count++] = a.inputs[0];
    addresses[count++] = a.inputs[1];
    if (has_bias_) addresses[count++] = a.inputs[2];
    if (has_residual_) addresses[count++] = a.inputs[3];
    addresses[count++] = a.outputs[0];
    kernel_.run(addresses, a.workspace, a.queue);
  }

 private:
  CudnnConvolution(const ConvolutionShape& shape, const Networks& networks,
                   const EngineRules& rules)
      : has_bias_(shape.has_bias),
        has_residual_(shape.has_residual),
        kernel_(networks, convolution_graph(shape), rules) {
    workspace_bytes = kernel_.workspace_bytes();
  }

  bool has_bias_, has_residual_;
  PlanKernel kernel_;
};

ConvolutionMap map_of(const Operand& operand) {
  ConvolutionMap map;
  const auto& strides = operand.layout.strides;
  map.outer = strides[0], map.inner = strides[1];
  for (std::size_t i = 2; i < strides.size(); ++i) map.axis[i + 3 - strides.size()] = strides[i];
  return map;
}

class PlainConvolutionKernel final : public PreparedKernel {
 public:
  PlainConvolutionKernel(const KernelRequest& r, Networks networks)
      : networks_(std::move(networks)) {
    const Operands o(r);
    const ConvolutionShape shape = shape_of(r, true);
    PlainConvolution& c = convolution_;
    c.pass = shape.pass;
    c.dtype = shape.dtype;
    c.activation = shape.activation;
    c.images = shape.x[0];
    c.groups = r.attributes().integer("group");
    c.in_channels = shape.weight[1];
    c.out_channels = shape.weight[0] / c.groups;
    c.x = map_of(*o.x), c.weight = map_of(*o.weight), c.y = map_of(*o.y);
    if (shape.has_bias) c.bias_stride = r.inputs[2].layout.strides[0];
    if (shape.has_residual) c.residual = map_of(r.inputs[3]);
    has_bias_ = shape.has_bias, has_residual_ = shape.has_residual;
    const std::size_t spatial = shape.x.size() - 2;
    for (std::size_t i = 0; i < spatial; ++i) {
      c.axes[i + 3 - spatial] = {.in = static_cast<int>(shape.x[i + 2]),
                                 .out = static_cast<int>(shape.y[i + 2]),
                                 .kernel = static_cast<int>(shape.weight[i + 2]),
                                 .stride = static_cast<int>(shape.steps.strides[i]),
                                 .dilation = static_cast<int>(shape.steps.dilations[i]),
                                 .pad_begin = static_cast<int>(shape.steps.pads_begin[i])};
    }
    c.channels_inside = is_channels_last(r.outputs[0].layout, r.outputs[0].type.shape);
  }

  void run(const KernelArguments& a) noexcept override {
    run_convolution(networks_->gpu(), convolution_,
                    {.a = a.inputs[0],
                     .b = a.inputs[1],
                     .bias = has_bias_ ? a.inputs[2] : nullptr,
                     .residual = has_residual_ ? a.inputs[3] : nullptr,
                     .result = a.outputs[0]},
                    a.queue);
  }

 private:
  Networks networks_;
  PlainConvolution convolution_;
  bool has_bias_ = false, has_residual_ = false;
};

}  // namespace

void add_cudnn_convolutions(KernelList& list, const Networks& networks) {
  for (const char* op : ops) {
    list.push_back({"cudnn.conv", op,
                    [networks](const KernelRequest& r) { return refuse(*networks, r); },
                    [networks](const KernelRequest& r) { return propose(*networks, r); },
                    makes<CudnnConvolution>(networks)});
  }
}

void add_plain_convolutions(KernelList& list, const Networks& networks) {
  for (const char* op : ops) {
    list.push_back({"cuda.conv", op, refuse_other_types,
                    [networks](const KernelRequest& r) { return propose(*networks, r); },
                    makes<PlainConvolutionKernel>(networks)});
  }
}

}  // namespace tandem::cuda
