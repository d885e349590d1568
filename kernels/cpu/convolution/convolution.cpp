#include "kernels/cpu/convolution/convolution.h"

#include <string_view>

#include "engine/operators/activation.h"
#include "engine/operators/operator.h"
#include "kernels/cpu/products/products.h"

namespace tandem {
namespace {

bool is_pointwise(const Convolution& c) {
  for (std::size_t i = 0; i < c.spatial_rank(); ++i) {
    if (c.weight[i + 2] != 1 || c.strides[i] != 1 || c.pads_begin[i] != 0 || c.pads_end[i] != 0) {
      return false;
    }
  }
  return c.group == 1;
}

std::optional<std::string> refuse_any(const KernelRequest& request) {
  if (auto reason = refuse_unless_float32(request)) return reason;
  const Operand& out = request.outputs[0];
  const std::size_t rank = out.type.rank();
  if (rank < 3 || rank > 5) return "takes 1, 2 or 3 spatial axes";
  for (const Operand& operand : request.inputs) {
    if (operand.present && operand.type.elements() == 0) return "an operand is empty";
  }
  if (out.type.elements() == 0) return "the result is empty";
  if (request.node->op->role == Role::fused_convolution) {
    const Activation activation = activation_of(request.attributes());
    if (activation != Activation::none && activation != Activation::relu) {
      return "knows no activation " + name_of(activation);
    }
  }
  return std::nullopt;
}

std::optional<std::string> refuse_pointwise(const KernelRequest& request) {
  if (auto reason = refuse_any(request)) return reason;
  if (!is_pointwise(convolution_of(request)))
    return "not a 1 x 1 kernel with stride 1 without pads";
  return std::nullopt;
}

/// Where oneDNN's speed falls far below that of plain products, by measurement.
std::optional<std::string> refuse_taps(const KernelRequest& request) {
  if (auto reason = refuse_any(request)) return reason;
  const Convolution c = convolution_of(request);
  if (c.group != 1) return "takes no groups";
  const std::int64_t largest = c.pass == ConvolutionPass::weight ? 16 : 4;
  if (c.out_positions() > largest) return "maps are not tiny";
  if (c.in_channels() < 32 || c.out_channels() < 32) return "too few channels";
  if (c.images() < 8) return "too few images";
  return std::nullopt;
}

std::optional<std::string> refuse_depthwise_weights(const KernelRequest& request) {
  if (auto reason = refuse_any(request)) return reason;
  const Convolution c = convolution_of(request);
  if (c.spatial_rank() != 2) return "takes 2 spatial axes";
  if (c.group != c.in_channels() || c.group != c.out_channels()) return "not depthwise";
  const bool is_small = c.weight[2] == c.weight[3] && (c.weight[2] == 3 || c.weight[2] == 5);
  if (!is_small) return "windows other than 3 x 3 and 5 x 5";
  return std::nullopt;
}

/// Where the tiles are faster than oneDNN, by measurement: not for fewer channels.
std::optional<std::string> refuse_weight_tiles(const KernelRequest& request) {
  if (auto reason = refuse_any(request)) return reason;
  const Convolution c = convolution_of(request);
  if (c.spatial_rank() != 2) return "takes 2 spatial axes";
  if (c.group != 1) return "takes no groups";
  if (c.taps() == 1) return "windows of 1 x 1";
  if (c.in_channels() < 16) return "too few input channels";
  if (c.out_channels() < 32 || c.out_channels() % 16 != 0) {
    return "output channels are not 32 or more, by whole vectors of 16";
  }
  return std::nullopt;
}

LayoutConstraint constraint(LayoutConstraint::Kind kind) { return {.kind = kind, .layout = {}}; }

Proposal proposal(const KernelRequest& request, LayoutConstraint::Kind activations) {
  const Convolution c = convolution_of(request);
  const LayoutConstraint map = constraint(activations),
                         plain = constraint(LayoutConstraint::Kind::row_major);
  const LayoutConstraint weight{.kind = LayoutConstraint::Kind::exact,
                                .layout = tap_layout(c.weight)};
  switch (c.pass) {
    case ConvolutionPass::forward:
      return {.inputs = {map, weight, plain, map}, .outputs = {map}};
    case ConvolutionPass::input:
      return {.inputs = {map, weight}, .outputs = {map}};
    case ConvolutionPass::weight:
      break;
  }
  return {.inputs = {map, map}, .outputs = {weight}};
}

std::vector<Proposal> propose_channels_last(const KernelRequest& request) {
  return {proposal(request, LayoutConstraint::Kind::channels_last)};
}

std::vector<Proposal> propose_both(const KernelRequest& request) {
  return {proposal(request, LayoutConstraint::Kind::channels_last),
          proposal(request, LayoutConstraint::Kind::row_major)};
}

}  // namespace

Convolution convolution_of(const KernelRequest& request) {
  Convolution c;
  const std::string_view op = request.node->op->name;
  const Attributes& attributes = request.attributes();
  if (op == "ConvGradInput") {
    c.pass = ConvolutionPass::input;
    c.y = request.inputs[0].type.shape;
    c.weight = request.inputs[1].type.shape;
    c.x = request.outputs[0].type.shape;
  } else if (op == "ConvGradWeight") {
    c.pass = ConvolutionPass::weight;
    c.x = request.inputs[0].type.shape;
    c.y = request.inputs[1].type.shape;
    c.weight = request.outputs[0].type.shape;
  } else {
    c.x = request.inputs[0].type.shape;
    c.weight = request.inputs[1].type.shape;
    c.y = request.outputs[0].type.shape;
    c.has_bias = request.inputs.size() > 2 && request.inputs[2].present;
    c.has_residual = request.inputs.size() > 3 && request.inputs[3].present;
    c.relu = op == "ConvFused" && activation_of(attributes) == Activation::relu;
  }
  c.strides = attributes.integers("strides");
  c.dilations = attributes.integers("dilations");
  const Ints& pads = attributes.integers("pads");
  const auto half = static_cast<std::ptrdiff_t>(pads.size() / 2);
  c.pads_begin.assign(pads.begin(), pads.begin() + half);
  c.pads_end.assign(pads.begin() + half, pads.end());
  c.group = attributes.integer("group");
  return c;
}

ConvolutionAxis convolution_axis(const Convolution& c, std::size_t spatial_axis) {
  return {.in = c.x[spatial_axis + 2],
          .out = c.y[spatial_axis + 2],
          .window = c.weight[spatial_axis + 2],
          .stride = c.strides[spatial_axis],
          .dilation = c.dilations[spatial_axis],
          .pad = c.pads_begin[spatial_axis]};
}

Layout tap_layout(const Shape& weight) {
  std::vector<int> order;
  for (std::size_t i = 2; i < weight.size(); ++i) order.push_back(static_cast<int>(i));
  order.push_back(1);
  order.push_back(0);
  return permuted(weight, order);
}

void add_convolution_kernels(KernelList& list) {
  list.push_back({.name = "simd.conv_depthwise",
                  .op = "ConvGradWeight",
                  .refuse = refuse_depthwise_weights,
                  .propose = propose_channels_last,
                  .prepare = prepare_depthwise_weights});
  for (const char* op : {"Conv", "ConvFused", "ConvGradInput", "ConvGradWeight"}) {
    list.push_back({.name = "simd.conv_pointwise",
                    .op = op,
                    .refuse = refuse_pointwise,
                    .propose = propose_channels_last,
                    .prepare = prepare_pointwise_convolution});
    list.push_back({.name = "simd.conv_taps",
                    .op = op,
                    .refuse = refuse_taps,
                    .propose = propose_channels_last,
                    .prepare = prepare_tap_convolution});
    if (op == std::string_view("ConvGradWeight")) {
      list.push_back({.name = "simd.conv_weights",
                      .op = op,
                      .refuse = refuse_weight_tiles,
                      .propose = propose_channels_last,
                      .prepare = prepare_weight_gradient});
    }
    list.push_back({.name = "onednn.conv",
                    .op = op,
                    .refuse = refuse_any,
                    .propose = propose_both,
                    .prepare = prepare_onednn_convolution});
  }
}

}  // namespace tandem
