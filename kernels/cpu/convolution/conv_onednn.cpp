// Convolutions by oneDNN. Weights lie in the tap layout; where the primitive wants blocks of its
// own they are reordered into the workspace, which costs little compared with the products of maps
// that are not tiny.
#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string_view>

#include "kernels/cpu/convolution/convolution.h"
#include "kernels/cpu/convolution/onednn.h"
#include "kernels/cpu/parallel.h"

namespace tandem {
namespace {

using dnnl::memory;

// oneDNN's kernels made at run time make 0 of NaN in their Relu. x clamp(FLT_MAX x, 0, 1) is x
// where x > 0, -0 below, and NaN where x is NaN or -infinity; the absolute value takes the sign
// from the zeros. Of x below 3e-39 it is less.
void append_relu(dnnl::post_ops& then) {
  then.append_eltwise(dnnl::algorithm::eltwise_hardswish, std::numeric_limits<float>::max(), 0);
  then.append_eltwise(dnnl::algorithm::eltwise_abs, 0, 0);
}

bool is_by_gemm(const dnnl::convolution_forward::primitive_desc& desc) {
  return std::string_view(desc.impl_info_str()).starts_with("x64:gemm");
}

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

struct Descs {
  bool last;  // activations are channels-last, else row-major
  memory::desc x, y, weight, bias;
  memory::desc any_weight;
  memory::dims strides, dilations, pads_begin, pads_end;
};

Descs describe(const Convolution& c, const Layout& x, const Layout& y) {
  Descs d;
  // Maps of one channel or one position are both; oneDNN has no fast kernel where x and y differ.
  d.last = is_channels_last(x, c.x) && is_channels_last(y, c.y);
  d.x = onednn_desc(c.x, d.last ? channels_last(c.x) : row_major(c.x));
  d.y = onednn_desc(c.y, d.last ? channels_last(c.y) : row_major(c.y));
  Shape shape = c.weight;
  Layout layout = tap_layout(c.weight);
  if (c.group > 1) {
    shape[0] /= c.group;
    shape.insert(shape.begin(), c.group);
    layout.strides.insert(layout.strides.begin(), shape[1]);
  }
  const memory::dims dims(shape.begin(), shape.end());
  d.weight = memory::desc(dims, memory::data_type::f32,
                          memory::dims(layout.strides.begin(), layout.strides.end()));
  d.any_weight = memory::desc(dims, memory::data_type::f32, memory::format_tag::any);
  if (c.has_bias) d.bias = memory::desc({c.y[1]}, memory::data_type::f32, memory::format_tag::a);
  d.strides.assign(c.strides.begin(), c.strides.end());
  for (const std::int64_t dilation : c.dilations) d.dilations.push_back(dilation - 1);
  d.pads_begin.assign(c.pads_begin.begin(), c.pads_begin.end());
  d.pads_end.assign(c.pads_end.begin(), c.pads_end.end());
  return d;
}

dnnl::convolution_forward::primitive_desc forward_desc(const dnnl::engine& engine, const Descs& d,
                                                       const memory::desc& weight,
                                                       const dnnl::primitive_attr& attributes) {
  constexpr auto kind = dnnl::prop_kind::forward_training;
  constexpr auto direct = dnnl::algorithm::convolution_direct;
  if (d.bias.get_ndims() > 0) {
    return {engine, kind,      direct,      d.x,          weight,     d.bias,
            d.y,    d.strides, d.dilations, d.pads_begin, d.pads_end, attributes};
  }
  return {engine,    kind,        direct,       d.x,        weight,    d.y,
          d.strides, d.dilations, d.pads_begin, d.pads_end, attributes};
}

/// Some of oneDNN's programs are written out position by position of the innermost axis. On wider
/// maps than this they take seconds and gigabytes to make, in proportion to the width, and run no
/// faster than those that are not.
constexpr std::int64_t widest_written_out = 1 << 15;

bool is_wide(const Descs& d) {
  return std::max(d.x.get_dims().back(), d.y.get_dims().back()) > widest_written_out;
}

/// Where a map is wide, leaves an implementation whose name begins with one of `written_out` for
/// the next one.
template <class PrimitiveDesc>
void choose_for_width(PrimitiveDesc& desc, const Descs& d,
                      std::initializer_list<std::string_view> written_out) {
  if (!is_wide(d)) return;
  const auto is_written_out = [&] {
    const std::string_view name = desc.impl_info_str();
    return std::any_of(written_out.begin(), written_out.end(),
                       [&](std::string_view start) { return name.starts_with(start); });
  };
  while (is_written_out() && desc.next_impl()) {
  }
}

/// oneDNN's own kernels for 1 x 1 windows copy the positions that a stride meets into the
/// scratchpad, in whole blocks of channels: with a part of a block the copies run past the
/// scratchpad, weight gradients are wrong, and some calls do not end.
bool copies_parts_of_blocks(const Descs& d) {
  const auto no_blocks = [](std::int64_t channels) { return channels % 16 != 0; };
  return std::any_of(d.strides.begin(), d.strides.end(), [](std::int64_t s) { return s != 1; }) &&
         (d.weight.get_ndims() > d.x.get_ndims() || no_blocks(d.x.get_dims()[1]) ||
          no_blocks(d.y.get_dims()[1]));
}

/// Leaves the implementations that the shape or the width of the maps forbids for the next one.
template <class PrimitiveDesc>
void choose(PrimitiveDesc& desc, const Descs& d,
            std::initializer_list<std::string_view> written_out) {
  const auto is_forbidden = [&] {
    return copies_parts_of_blocks(d) &&
           std::string_view(desc.impl_info_str()).find("jit_1x1") != std::string_view::npos;
  };
  choose_for_width(desc, d, written_out);
  while (is_forbidden() && desc.next_impl()) choose_for_width(desc, d, written_out);
}

class OneDnnConvolution final : public PreparedKernel {
 public:
  OneDnnConvolution(const KernelRequest& request, const Convolution& c, const Layout& x,
                    const Layout& y)
      : pass_(c.pass),
        threads_(request.facts->threads),
        has_bias_(c.has_bias),
        has_residual_(c.has_residual) {
    const OneDnnTeam team(threads_);
    const Descs d = describe(c, x, y);
    switch (c.pass) {
      case ConvolutionPass::forward:
        make_forward(c, d);
        break;
      case ConvolutionPass::input:
        make_input(d);
        break;
      case ConvolutionPass::weight:
        make_weight(d);
        break;
    }
    const std::size_t scratchpad = std::max(call_.scratchpad_bytes(), reorder_.scratchpad_bytes());
    weight_at_ = aligned(scratchpad);
    workspace_bytes = weight_at_ + (reorder_.empty() ? 0 : weight_bytes_);
  }

  void run(const KernelArguments& arguments) noexcept override {
    const OneDnnTeam team(threads_);
    const auto in = arguments.inputs;
    void* const out = arguments.outputs[0];
    void* const scratchpad = arguments.workspace;
    void* const own = static_cast<char*>(arguments.workspace) + weight_at_;
    if (pass_ == ConvolutionPass::weight) {
      call_.run({in[0], in[1], reorder_.empty() ? out : own}, scratchpad);
      if (!reorder_.empty()) reorder_.run({own, out}, scratchpad);
      return;
    }
    const void* weight = in[1];
    if (!reorder_.empty()) {
      reorder_.run({weight, own}, scratchpad);
      weight = own;
    }
    const bool added = has_residual_ && residual_elements_ == 0;
    if (residual_elements_ > 0) copy_residual(in[3], out);
    if (has_bias_ && added) {
      call_.run({in[0], weight, out, in[2], in[3]}, scratchpad);
    } else if (has_bias_) {
      call_.run({in[0], weight, out, in[2]}, scratchpad);
    } else if (added) {
      call_.run({in[0], weight, out, in[3]}, scratchpad);
    } else {
      call_.run({in[0], weight, out}, scratchpad);
    }
  }

 private:
  void copy_residual(const void* from, void* to) const {
    parallel_ranges(threads_, residual_elements_, 8 * residual_elements_,
                    [&](std::int64_t begin, std::int64_t end) {
                      std::memcpy(static_cast<float*>(to) + begin,
                                  static_cast<const float*>(from) + begin,
                                  static_cast<std::size_t>(end - begin) * sizeof(float));
                    });
  }

  static dnnl::primitive_attr forward_attributes(const Convolution& c, const Descs& d,
                                                 bool relu_of_library) {
    dnnl::post_ops then;
    if (c.has_residual && d.last) {
      then.append_binary(dnnl::algorithm::binary_add, d.y);
    } else if (c.has_residual) {  // the row-major kernels know sums with what y holds only
      then.append_sum();
    }
    if (c.relu && relu_of_library) {
      then.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
    } else if (c.relu) {
      append_relu(then);
    }
    dnnl::primitive_attr attributes = onednn_attributes();
    attributes.set_post_ops(then);
    return attributes;
  }

  void make_forward(const Convolution& c, const Descs& d) {
    const int residual = c.has_residual && d.last ? 0 : -1;
    if (c.has_residual && !d.last) residual_elements_ = element_count(c.y);
    // The convolution by im2col keeps NaN in a Relu that is written in C++ and by far the fastest.
    auto attributes = forward_attributes(c, d, true);
    auto desc = forward_desc(engine_, d, d.any_weight, attributes);
    choose(desc, d, {"brg"});
    if (c.relu && !is_by_gemm(desc)) {
      attributes = forward_attributes(c, d, false);
      desc = forward_desc(engine_, d, d.any_weight, attributes);
      choose(desc, d, {"brg"});
    }
    // The batched-product kernels read the tap layout as fast as their own blocks.
    if (c.group == 1 && c.weight[1] % 16 == 0 && !is_by_gemm(desc) && !is_wide(d)) {
      const auto plain = forward_desc(engine_, d, d.weight, attributes);
      if (std::string_view(plain.impl_info_str()).starts_with("brgconv")) desc = plain;
    }
    std::vector<OneDnnCall::Slot> slots{
        {DNNL_ARG_SRC, d.x}, {DNNL_ARG_WEIGHTS, desc.weights_desc()}, {DNNL_ARG_DST, d.y}};
    if (c.has_bias) slots.push_back({DNNL_ARG_BIAS, d.bias});
    if (residual >= 0) {
      slots.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(residual) | DNNL_ARG_SRC_1, d.y});
    }
    call_ = {engine_, dnnl::convolution_forward(desc), desc.scratchpad_desc(), std::move(slots)};
    to_blocks(d.weight, desc.weights_desc());
  }

  void make_input(const Descs& d) {
    const auto hint = forward_desc(engine_, d, d.any_weight, onednn_attributes());
    dnnl::convolution_backward_data::primitive_desc desc(
        engine_, dnnl::algorithm::convolution_direct, d.x, d.any_weight, d.y, d.strides,
        d.dilations, d.pads_begin, d.pads_end, hint, onednn_attributes());
    choose(desc, d, {"brg"});
    call_ = {engine_,
             dnnl::convolution_backward_data(desc),
             desc.scratchpad_desc(),
             {{DNNL_ARG_DIFF_DST, d.y},
              {DNNL_ARG_WEIGHTS, desc.weights_desc()},
              {DNNL_ARG_DIFF_SRC, d.x}}};
    to_blocks(d.weight, desc.weights_desc());
  }

  void make_weight(const Descs& d) {
    const auto hint = forward_desc(engine_, d, d.any_weight, onednn_attributes());
    dnnl::convolution_backward_weights::primitive_desc desc(
        engine_, dnnl::algorithm::convolution_direct, d.x, d.any_weight, d.y, d.strides,
        d.dilations, d.pads_begin, d.pads_end, hint, onednn_attributes());
    choose(desc, d, {"brg", "jit:"});
    call_ = {engine_,
             dnnl::convolution_backward_weights(desc),
             desc.scratchpad_desc(),
             {{DNNL_ARG_SRC, d.x},
              {DNNL_ARG_DIFF_DST, d.y},
              {DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc()}}};
    weight_bytes_ = aligned(desc.diff_weights_desc().get_size());
    if (desc.diff_weights_desc() != d.weight) {
      reorder_ = onednn_reorder(engine_, desc.diff_weights_desc(), d.weight);
    }
  }

  void to_blocks(const memory::desc& tap, const memory::desc& blocks) {
    weight_bytes_ = aligned(blocks.get_size());
    if (blocks != tap) reorder_ = onednn_reorder(engine_, tap, blocks);
  }

  ConvolutionPass pass_;
  int threads_;
  bool has_bias_, has_residual_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  OneDnnCall call_, reorder_;  // reorder_: of the weights, where needed
  std::int64_t residual_elements_ =
      0;  // copied into y before the product adds to it; 0: not at all
  std::size_t weight_at_ = 0, weight_bytes_ = 0;
};

}  // namespace

std::unique_ptr<PreparedKernel> prepare_onednn_convolution(const KernelRequest& request) {
  const Convolution c = convolution_of(request);
  const Operand& out = request.outputs[0];
  switch (c.pass) {
    case ConvolutionPass::forward:
      return std::make_unique<OneDnnConvolution>(request, c, request.inputs[0].layout, out.layout);
    case ConvolutionPass::input:
      return std::make_unique<OneDnnConvolution>(request, c, out.layout, request.inputs[0].layout);
    case ConvolutionPass::weight:
      break;
  }
  return std::make_unique<OneDnnConvolution>(request, c, request.inputs[0].layout,
                                             request.inputs[1].layout);
}

}  // namespace tandem
