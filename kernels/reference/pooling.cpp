// MaxPool, AveragePool and their gradients by their definitions.
#include <algorithm>
#include <cmath>

#include "kernels/reference/network_support.h"
#include "kernels/reference/windows.h"

namespace tandem::reference {
namespace {

Windows pooling_windows(const KernelRequest& r) {
  return three_windows(r.attributes(), r.attributes().integers("kernel_shape"));
}

/// f(n, c) for all planes of a tensor.
template <class F>
void for_planes(const Map& map, F f) {
  for (std::int64_t n = 0; n < map.extent[0]; ++n) {
    for (std::int64_t c = 0; c < map.extent[1]; ++c) f(n, c);
  }
}

struct Maximum {
  std::int64_t i = 0, j = 0, k = 0;
  bool found = false;
};

/// The first largest element of a window; a NaN wins.
template <class T>
Maximum maximum_of(const T* plane, const Map& x, const Windows& w, std::int64_t o, std::int64_t p,
                   std::int64_t q) {
  Maximum best;
  double largest = 0;
  for_taps(w, x.extent + 2, o, p, q, [&](auto i, auto j, auto k, auto, auto, auto) {
    const double value = static_cast<double>(plane[x.at(0, 0, i, j, k)]);
    if (best.found && !(value > largest) && !(std::isnan(value) && !std::isnan(largest))) return;
    best = {i, j, k, true};
    largest = value;
  });
  return best;
}

template <class T>
T lowest() {
  if constexpr (std::is_integral_v<T>) {
    return std::numeric_limits<T>::lowest();
  } else {
    return rounded<T>(-std::numeric_limits<double>::infinity());
  }
}

constexpr auto max_pool = []<class T>(const KernelRequest& r, T) {
  const Map x(r.inputs[0]), y(r.outputs[0]), indices(r.outputs[1]);
  const Windows w = pooling_windows(r);
  const bool column_major = r.attributes().flag("storage_order");
  return prepared([=](const KernelArguments& a) {
    for_planes(y, [&](auto n, auto c) {
      const T* plane = static_cast<const T*>(a.inputs[0]) + x.at(n, c, 0, 0, 0);
      const std::int64_t* e = x.extent + 2;
      for_three(y.extent[2], y.extent[3], y.extent[4], [&](auto o, auto p, auto q) {
        const Maximum best = maximum_of(plane, x, w, o, p, q);
        const std::int64_t flat = column_major ? best.i + e[0] * (best.j + e[1] * best.k)
                                               : (best.i * e[1] + best.j) * e[2] + best.k;
        if (a.outputs[0] != nullptr) {
          static_cast<T*>(a.outputs[0])[y.at(n, c, o, p, q)] =
              best.found ? plane[x.at(0, 0, best.i, best.j, best.k)] : lowest<T>();
        }
        if (a.outputs[1] != nullptr) {
          static_cast<std::int64_t*>(a.outputs[1])[indices.at(n, c, o, p, q)] =
              (n * x.extent[1] + c) * e[0] * e[1] * e[2] + flat;
        }
      });
    });
  });
};

// The winner is found again as the first that equals y; one plane of dx is summed in double.
constexpr auto max_pool_grad = []<class T>(const KernelRequest& r, T) {
  const Map x(r.inputs[0]), y(r.inputs[1]), dy(r.inputs[2]), dx(r.outputs[0]);
  const Windows w = pooling_windows(r);
  const std::int64_t plane_elements = x.extent[2] * x.extent[3] * x.extent[4];
  return prepared(
      [=](const KernelArguments& a) {
        const T* xs = static_cast<const T*>(a.inputs[0]);
        const T* ys = static_cast<const T*>(a.inputs[1]);
        double* sums = static_cast<double*>(a.workspace);
        const auto flat = [&](auto i, auto j, auto k) {
          return (i * x.extent[3] + j) * x.extent[4] + k;
        };
        for_planes(x, [&](auto n, auto c) {
          std::fill(sums, sums + plane_elements, 0.0);
          for_three(y.extent[2], y.extent[3], y.extent[4], [&](auto o, auto p, auto q) {
            const double wanted = static_cast<double>(ys[y.at(n, c, o, p, q)]);
            bool found = false;
            for_taps(w, x.extent + 2, o, p, q, [&](auto i, auto j, auto k, auto, auto, auto) {
              const double value = static_cast<double>(xs[x.at(n, c, i, j, k)]);
              const bool equal = value == wanted || (std::isnan(value) && std::isnan(wanted));
              if (found || !equal) return;
              found = true;
              sums[flat(i, j, k)] += static_cast<const T*>(a.inputs[2])[dy.at(n, c, o, p, q)];
            });
          });
          for_three(x.extent[2], x.extent[3], x.extent[4], [&](auto i, auto j, auto k) {
            static_cast<T*>(a.outputs[0])[dx.at(n, c, i, j, k)] = rounded<T>(sums[flat(i, j, k)]);
          });
        });
      },
      static_cast<std::size_t>(plane_elements) * sizeof(double));
};

/// By how many elements window (o, p, q) is divided: its taps inside x, or inside x and its
/// padding.
double divisor(const Windows& w, const std::int64_t* extent, bool include_pad, std::int64_t o,
               std::int64_t p, std::int64_t q) {
  const std::int64_t position[3] = {o, p, q};
  double product = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t low = include_pad ? -w[axis].pad_begin : 0;
    const std::int64_t high = extent[axis] + (include_pad ? w[axis].pad_end : 0);
    int taps = 0;
    for (std::int64_t k = 0; k < w[axis].kernel; ++k) {
      const std::int64_t i = w[axis].start(position[axis]) + k * w[axis].dilation;
      if (i >= low && i < high) ++taps;
    }
    product *= taps;
  }
  return product;
}

constexpr auto average_pool = []<class T>(const KernelRequest& r, T) {
  const Map x(r.inputs[0]), y(r.outputs[0]);
  const Windows w = pooling_windows(r);
  const bool include_pad = r.attributes().flag("count_include_pad");
  return prepared([=](const KernelArguments& a) {
    const T* xs = static_cast<const T*>(a.inputs[0]);
    for_planes(y, [&](auto n, auto c) {
      for_three(y.extent[2], y.extent[3], y.extent[4], [&](auto o, auto p, auto q) {
        double sum = 0;
        for_taps(w, x.extent + 2, o, p, q, [&](auto i, auto j, auto k, auto, auto, auto) {
          sum += static_cast<double>(xs[x.at(n, c, i, j, k)]);
        });
        const double count = divisor(w, x.extent + 2, include_pad, o, p, q);
        static_cast<T*>(a.outputs[0])[y.at(n, c, o, p, q)] =
            rounded<T>(count > 0 ? sum / count : 0);
      });
    });
  });
};

constexpr auto average_pool_grad = []<class T>(const KernelRequest& r, T) {
  const Map dy(r.inputs[0]), dx(r.outputs[0]);
  const Windows w = pooling_windows(r);
  const bool include_pad = r.attributes().flag("count_include_pad");
  return prepared([=](const KernelArguments& a) {
    const T* dys = static_cast<const T*>(a.inputs[0]);
    for_planes(dx, [&](auto n, auto c) {
      for_three(dx.extent[2], dx.extent[3], dx.extent[4], [&](auto i, auto j, auto k) {
        double sum = 0;
        for_windows_at(w, dy.extent + 2, i, j, k, [&](auto o, auto p, auto q, auto, auto, auto) {
          sum += static_cast<double>(dys[dy.at(n, c, o, p, q)]) /
                 divisor(w, dx.extent + 2, include_pad, o, p, q);
        });
        static_cast<T*>(a.outputs[0])[dx.at(n, c, i, j, k)] = rounded<T>(sum);
      });
    });
  });
};

}  // namespace

void add_pooling(KernelList& list) {
  list.push_back(kernel_for<float, double, Float16, BFloat16, std::int8_t, std::uint8_t>(
      "reference.max_pool", "MaxPool", max_pool));
  list.push_back(float_kernel("reference.max_pool_grad", "MaxPoolGrad", max_pool_grad));
  list.push_back(float_kernel("reference.average_pool", "AveragePool", average_pool));
  list.push_back(float_kernel("reference.average_pool_grad", "AveragePoolGrad", average_pool_grad));
}

}  // namespace tandem::reference
