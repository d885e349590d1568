// Conv, ConvFused and Conv's gradients by their definitions, accumulated in double.
#include <cmath>
#include <numbers>

#include "engine/operators/activation.h"
#include "engine/operators/convolution.h"
#include "kernels/reference/network_support.h"
#include "kernels/reference/windows.h"
#include "kernels/shared/scalar.h"

namespace tandem::reference {
namespace {

double apply(Activation activation, double x) {
  switch (activation) {
    case Activation::relu:
      return scalar::relu(x);
    case Activation::gelu:
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case Activation::gelu_tanh: {
      const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
      return 0.5 * x * (1 + std::tanh(inner));
    }
    case Activation::relu_grad:  // not of convolutions
    case Activation::none:
      break;
  }
  return x;
}

/// Geometry of a convolution x, weight → y, whichever of the three is the result.
struct Geometry {
  Map x, weight, y;
  Windows windows;
  std::int64_t group = 1;

  Geometry(const Attributes& attributes, const Operand& x_operand, const Operand& weight_operand,
           const Operand& y_operand)
      : x(x_operand),
        weight(weight_operand),
        y(y_operand),
        windows(three_windows(attributes, Shape(weight_operand.type.shape.begin() + 2,
                                                weight_operand.type.shape.end()))),
        group(attributes.integer("group")) {}

  std::int64_t channels_per_group() const { return weight.extent[1]; }
  std::int64_t outputs_per_group() const { return y.extent[1] / group; }
};

template <class T>
std::unique_ptr<PreparedKernel> convolution_forward(const KernelRequest& r, T,
                                                    Activation activation) {
  const Geometry g(r.attributes(), r.inputs[0], r.inputs[1], r.outputs[0]);
  const Places bias = r.is_present(2) ? Places(r.inputs[2]) : Places();
  const Map residual = r.is_present(3) ? Map(r.inputs[3]) : Map();
  const bool has_bias = r.is_present(2), has_residual = r.is_present(3);
  return prepared([=](const KernelArguments& a) {
    const T* x = static_cast<const T*>(a.inputs[0]);
    const T* weight = static_cast<const T*>(a.inputs[1]);
    T* y = static_cast<T*>(a.outputs[0]);
    const std::int64_t channels = g.channels_per_group();
    for (std::int64_t n = 0; n < g.y.extent[0]; ++n) {
      for (std::int64_t m = 0; m < g.y.extent[1]; ++m) {
        const std::int64_t first = m / g.outputs_per_group() * channels;
        for_three(g.y.extent[2], g.y.extent[3], g.y.extent[4], [&](auto o, auto p, auto q) {
          double sum = has_bias ? double(static_cast<const T*>(a.inputs[2])[bias(m)]) : 0.0;
          for (std::int64_t c = 0; c < channels; ++c) {
            for_taps(g.windows, g.x.extent + 2, o, p, q,
                     [&](auto i, auto j, auto k, auto s, auto t, auto u) {
                       sum += double(x[g.x.at(n, first + c, i, j, k)]) *
                              double(weight[g.weight.at(m, c, s, t, u)]);
                     });
          }
          if (has_residual) sum += static_cast<const T*>(a.inputs[3])[residual.at(n, m, o, p, q)];
          y[g.y.at(n, m, o, p, q)] = rounded<T>(apply(activation, sum));
        });
      }
    }
  });
}

constexpr auto grad_input = []<class T>(const KernelRequest& r, T) {
  const Geometry g(r.attributes(), r.outputs[0], r.inputs[1], r.inputs[0]);
  return prepared([=](const KernelArguments& a) {
    const T* dy = static_cast<const T*>(a.inputs[0]);
    const T* weight = static_cast<const T*>(a.inputs[1]);
    T* dx = static_cast<T*>(a.outputs[0]);
    const std::int64_t outputs = g.outputs_per_group();
    for (std::int64_t n = 0; n < g.x.extent[0]; ++n) {
      for (std::int64_t c = 0; c < g.x.extent[1]; ++c) {
        const std::int64_t in_group = c % g.channels_per_group();
        const std::int64_t first = c / g.channels_per_group() * outputs;
        for_three(g.x.extent[2], g.x.extent[3], g.x.extent[4], [&](auto i, auto j, auto k) {
          double sum = 0;
          for_windows_at(g.windows, g.y.extent + 2, i, j, k,
                         [&](auto o, auto p, auto q, auto s, auto t, auto u) {
                           for (std::int64_t m = first; m < first + outputs; ++m) {
                             sum += double(dy[g.y.at(n, m, o, p, q)]) *
                                    double(weight[g.weight.at(m, in_group, s, t, u)]);
                           }
                         });
          dx[g.x.at(n, c, i, j, k)] = rounded<T>(sum);
        });
      }
    }
  });
};

constexpr auto grad_weight = []<class T>(const KernelRequest& r, T) {
  const Geometry g(r.attributes(), r.inputs[0], r.outputs[0], r.inputs[1]);
  return prepared([=](const KernelArguments& a) {
    const T* x = static_cast<const T*>(a.inputs[0]);
    const T* dy = static_cast<const T*>(a.inputs[1]);
    T* dweight = static_cast<T*>(a.outputs[0]);
    const Map& w = g.weight;
    for (std::int64_t m = 0; m < w.extent[0]; ++m) {
      for (std::int64_t c = 0; c < w.extent[1]; ++c) {
        const std::int64_t channel = m / g.outputs_per_group() * w.extent[1] + c;
        for_three(w.extent[2], w.extent[3], w.extent[4], [&](auto s, auto t, auto u) {
          double sum = 0;
          for (std::int64_t n = 0; n < g.y.extent[0]; ++n) {
            for_three(g.y.extent[2], g.y.extent[3], g.y.extent[4], [&](auto o, auto p, auto q) {
              const std::int64_t i = g.windows[0].start(o) + s * g.windows[0].dilation;
              const std::int64_t j = g.windows[1].start(p) + t * g.windows[1].dilation;
              const std::int64_t k = g.windows[2].start(q) + u * g.windows[2].dilation;
              if (i < 0 || j < 0 || k < 0 || i >= g.x.extent[2] || j >= g.x.extent[3] ||
                  k >= g.x.extent[4]) {
                return;
              }
              sum += double(x[g.x.at(n, channel, i, j, k)]) * double(dy[g.y.at(n, m, o, p, q)]);
            });
          }
          dweight[w.at(m, c, s, t, u)] = rounded<T>(sum);
        });
      }
    }
  });
};

}  // namespace

void add_convolution(KernelList& list) {
  list.push_back(float_kernel("reference.conv", "Conv", [](const KernelRequest& r, auto tag) {
    return convolution_forward(r, tag, Activation::none);
  }));
  list.push_back(
      float_kernel("reference.conv_fused", "ConvFused", [](const KernelRequest& r, auto tag) {
        return convolution_forward(r, tag, activation_of(r.attributes()));
      }));
  list.push_back(float_kernel("reference.conv_grad_input", "ConvGradInput", grad_input));
  list.push_back(float_kernel("reference.conv_grad_weight", "ConvGradWeight", grad_weight));
}

}  // namespace tandem::reference
