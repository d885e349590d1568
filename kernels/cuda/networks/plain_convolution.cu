// Convolutions by their definitions, summed in float32. A thread has one element of y or dx, a
// block one of dweight.
#include "kernels/cuda/networks/plain_convolution.h"

#include "kernels/cuda/launching.h"
#include "kernels/shared/block/each_index.h"
#include "kernels/shared/block/packs.h"
#include "kernels/shared/scalar.h"

namespace tandem::cuda {
namespace {

TANDEM_HOST_DEVICE inline std::int64_t offset_of(const ConvolutionMap& map, std::int64_t outer,
                                                 std::int64_t inner, int i, int j, int k) {
  return outer * map.outer + inner * map.inner + i * map.axis[0] + j * map.axis[1] +
         k * map.axis[2];
}

TANDEM_HOST_DEVICE inline float activated(Activation activation, float x) {
  switch (activation) {
    case Activation::relu:
      return scalar::relu(x);
    case Activation::gelu:
      return scalar::gelu(x);
    case Activation::gelu_tanh:
      return scalar::gelu_tanh(x);
    case Activation::relu_grad:
    case Activation::none:
      break;
  }
  return x;
}

/// Takes the rest apart by an extent: returns the part, leaves the whole.
TANDEM_HOST_DEVICE inline std::int64_t take(std::int64_t& rest, std::int64_t extent) {
  const std::int64_t whole = rest / extent, part = rest - whole * extent;
  rest = whole;
  return part;
}

struct Element {
  std::int64_t image, channel;
  int at[3];
};

TANDEM_HOST_DEVICE inline Element element_at(std::int64_t unit, std::int64_t channels,
                                             const int* extent, bool channels_inside) {
  Element e;
  if (channels_inside) e.channel = take(unit, channels);
  e.at[2] = static_cast<int>(take(unit, extent[2]));
  e.at[1] = static_cast<int>(take(unit, extent[1]));
  e.at[0] = static_cast<int>(take(unit, extent[0]));
  if (!channels_inside) e.channel = take(unit, channels);
  e.image = unit;
  return e;
}

template <class T>
struct ForwardBody {
  PlainConvolution c;
  std::int64_t units;
  const T *x, *weight, *bias, *residual;
  T* y;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const int extent[3] = {c.axes[0].out, c.axes[1].out, c.axes[2].out};
    each_index(block, units, [&](std::int64_t unit) {
      const Element e = element_at(unit, c.groups * c.out_channels, extent, c.channels_inside);
      float sum = bias != nullptr ? widened(bias[e.channel * c.bias_stride]) : 0.0f;
      sum += sum_of(e);
      if (residual != nullptr) {
        sum +=
            widened(residual[offset_of(c.residual, e.image, e.channel, e.at[0], e.at[1], e.at[2])]);
      }
      y[offset_of(c.y, e.image, e.channel, e.at[0], e.at[1], e.at[2])] =
          stored<T>(activated(c.activation, sum));
    });
  }

  TANDEM_HOST_DEVICE float sum_of(const Element& e) const {
    const std::int64_t first = e.channel / c.out_channels * c.in_channels;
    float sum = 0;
    for (int r = 0; r < c.axes[0].kernel; ++r) {
      const int i = e.at[0] * c.axes[0].stride - c.axes[0].pad_begin + r * c.axes[0].dilation;
      if (i < 0 || i >= c.axes[0].in) continue;
      for (int s = 0; s < c.axes[1].kernel; ++s) {
        const int j = e.at[1] * c.axes[1].stride - c.axes[1].pad_begin + s * c.axes[1].dilation;
        if (j < 0 || j >= c.axes[1].in) continue;
        for (int t = 0; t < c.axes[2].kernel; ++t) {
          const int k = e.at[2] * c.axes[2].stride - c.axes[2].pad_begin + t * c.axes[2].dilation;
          if (k < 0 || k >= c.axes[2].in) continue;
          const T* from = x + offset_of(c.x, e.image, first, i, j, k);
          const T* by = weight + offset_of(c.weight, e.channel, 0, r, s, t);
          for (std::int64_t n = 0; n < c.in_channels; ++n) {
            sum += widened(from[n * c.x.inner]) * widened(by[n * c.weight.inner]);
          }
        }
      }
    }
    return sum;
  }
};

/// The window whose tap lies at `position`, or -1.
TANDEM_HOST_DEVICE inline int window_at(const ConvolutionAxis& axis, int position, int tap) {
  const int start = position + axis.pad_begin - tap * axis.dilation;
  if (start < 0) return -1;
  const int window = start / axis.stride;
  return window * axis.stride == start && window < axis.out ? window : -1;
}

template <class T>
struct InputBody {
  PlainConvolution c;
  std::int64_t units;
  const T *dy, *weight;
  T* dx;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const int extent[3] = {c.axes[0].in, c.axes[1].in, c.axes[2].in};
    each_index(block, units, [&](std::int64_t unit) {
      const Element e = element_at(unit, c.groups * c.in_channels, extent, c.channels_inside);
      dx[offset_of(c.x, e.image, e.channel, e.at[0], e.at[1], e.at[2])] = stored<T>(sum_of(e));
    });
  }

  TANDEM_HOST_DEVICE float sum_of(const Element& e) const {
    const std::int64_t first = e.channel / c.in_channels * c.out_channels;
    const std::int64_t inner = e.channel % c.in_channels;
    float sum = 0;
    for (int r = 0; r < c.axes[0].kernel; ++r) {
      const int o = window_at(c.axes[0], e.at[0], r);
      if (o < 0) continue;
      for (int s = 0; s < c.axes[1].kernel; ++s) {
        const int p = window_at(c.axes[1], e.at[1], s);
        if (p < 0) continue;
        for (int t = 0; t < c.axes[2].kernel; ++t) {
          const int q = window_at(c.axes[2], e.at[2], t);
          if (q < 0) continue;
          const T* from = dy + offset_of(c.y, e.image, first, o, p, q);
          const T* by = weight + offset_of(c.weight, first, inner, r, s, t);
          for (std::int64_t m = 0; m < c.out_channels; ++m) {
            sum += widened(from[m * c.y.inner]) * widened(by[m * c.weight.outer]);
          }
        }
      }
    }
    return sum;
  }
};

template <class T>
struct WeightBody {
  PlainConvolution c;
  std::int64_t units;  // elements of dweight
  const T *x, *dy;
  T* dweight;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    typename Block::template Private<float> sums;
    for (std::int64_t unit = block.index(); unit < units; unit += block.blocks()) {
      std::int64_t rest = unit;
      const std::int64_t inner = take(rest, c.in_channels);
      const int t = static_cast<int>(take(rest, c.axes[2].kernel));
      const int s = static_cast<int>(take(rest, c.axes[1].kernel));
      const int r = static_cast<int>(take(rest, c.axes[0].kernel));
      const std::int64_t outer = rest;
      const std::int64_t channel = outer / c.out_channels * c.in_channels + inner;
      const std::int64_t windows = c.images * c.axes[0].out * c.axes[1].out * c.axes[2].out;
      block.each([&](int thread) {
        float sum = 0;
        for (std::int64_t window = thread; window < windows; window += block.threads()) {
          std::int64_t left = window;
          const int q = static_cast<int>(take(left, c.axes[2].out));
          const int p = static_cast<int>(take(left, c.axes[1].out));
          const int o = static_cast<int>(take(left, c.axes[0].out));
          const int i = o * c.axes[0].stride - c.axes[0].pad_begin + r * c.axes[0].dilation;
          const int j = p * c.axes[1].stride - c.axes[1].pad_begin + s * c.axes[1].dilation;
          const int k = q * c.axes[2].stride - c.axes[2].pad_begin + t * c.axes[2].dilation;
          if (i < 0 || j < 0 || k < 0 || i >= c.axes[0].in || j >= c.axes[1].in ||
              k >= c.axes[2].in) {
            continue;
          }
          sum += widened(x[offset_of(c.x, left, channel, i, j, k)]) *
                 widened(dy[offset_of(c.y, left, outer, o, p, q)]);
        }
        sums(thread) = sum;
      });
      const float sum = block.sum(sums);
      block.one([&] { dweight[offset_of(c.weight, outer, inner, r, s, t)] = stored<T>(sum); });
    }
  }
};

std::int64_t positions(const PlainConvolution& c, int ConvolutionAxis::*extent) {
  return std::int64_t{c.axes[0].*extent} * (c.axes[1].*extent) * (c.axes[2].*extent);
}

/// `threads` to each of the body's units; nothing where there is none.
template <class Body>
void launch_units(GpuContext& gpu, const char* name, const Body& body, int threads, void* queue) {
  if (body.units == 0) return;
  const LaunchShape shape = spread(body.units * threads, gpu.properties.multiprocessors);
  gpu.launch(launch_of(name, shape, body), queue);
}

template <class T>
void run(GpuContext& gpu, const PlainConvolution& c, const ConvolutionAddresses& at, void* queue) {
  const T *a = static_cast<const T*>(at.a), *b = static_cast<const T*>(at.b);
  T* result = static_cast<T*>(at.result);
  switch (c.pass) {
    case ConvolutionPass::forward: {
      const std::int64_t units =
          c.images * c.groups * c.out_channels * positions(c, &ConvolutionAxis::out);
      const ForwardBody<T> body{
          c,     units, a, b, static_cast<const T*>(at.bias), static_cast<const T*>(at.residual),
          result};
      return launch_units(gpu, "convolution", body, 1, queue);
    }
    case ConvolutionPass::input: {
      const std::int64_t units =
          c.images * c.groups * c.in_channels * positions(c, &ConvolutionAxis::in);
      const InputBody<T> body{c, units, a, b, result};
      return launch_units(gpu, "convolution_grad_input", body, 1, queue);
    }
    case ConvolutionPass::weight: {
      const std::int64_t units =
          c.groups * c.out_channels * c.in_channels * positions(c, &ConvolutionAxis::kernel);
      const WeightBody<T> body{c, units, a, b, result};
      return launch_units(gpu, "convolution_grad_weight", body, 256, queue);
    }
  }
}

}  // namespace

void run_convolution(GpuContext& gpu, const PlainConvolution& convolution,
                     const ConvolutionAddresses& at, void* queue) {
  with_float(convolution.dtype, [&](auto tag) { run<decltype(tag)>(gpu, convolution, at, queue); });
}

}  // namespace tandem::cuda
