// GridSample and its gradient: for each place, the product of the taps of all axes.
#include "engine/operators/grid_sample.h"

#include <array>

#include "kernels/reference/network_support.h"

namespace tandem::reference {
namespace {

struct Sampling {
  Places x, grid, y;
  GridSampler sampler;
  Shape extents;  // spatial extents of x, those after [N, C]
  std::int64_t batch = 0, channels = 0, elements = 1, places = 1;

  Sampling(const KernelRequest& r, const Operand& x_operand, const Operand& grid_operand,
           const Operand& y_operand)
      : x(x_operand),
        grid(grid_operand),
        y(y_operand),
        sampler(r.attributes()),
        extents(x_operand.type.shape.begin() + 2, x_operand.type.shape.end()),
        batch(x_operand.type.shape[0]),
        channels(x_operand.type.shape[1]),
        elements(element_count(extents)) {
    const Shape& shape = y_operand.type.shape;
    for (std::size_t i = 2; i < shape.size(); ++i) places *= shape[i];
  }

  std::int64_t axes() const { return static_cast<std::int64_t>(extents.size()); }
  std::int64_t x_index(std::int64_t n, std::int64_t c, std::int64_t element) const {
    return (n * channels + c) * elements + element;
  }
  std::int64_t y_index(std::int64_t n, std::int64_t c, std::int64_t place) const {
    return (n * channels + c) * places + place;
  }
  /// Index of the coordinate along `axis`; the grid names axes from the last one on.
  std::int64_t grid_index(std::int64_t n, std::int64_t place, std::int64_t axis) const {
    return (n * places + place) * axes() + (axes() - 1 - axis);
  }

  /// f(element, weight, slopes of the weight along the axes) for each element that is seen.
  template <class T, class F>
  void visit(const T* coordinates, std::int64_t n, std::int64_t place, F f) const {
    sampler.visit(
        extents,
        [&](std::size_t k) {
          const auto first = (n * places + place) * axes();
          return coordinates[grid(first + static_cast<std::int64_t>(k))];
        },
        f);
  }
};

constexpr auto grid_sample_forward = []<class T>(const KernelRequest& r, T) {
  return prepared(
      [s = Sampling(r, r.inputs[0], r.inputs[1], r.outputs[0])](const KernelArguments& a) {
        const T* x = static_cast<const T*>(a.inputs[0]);
        T* y = static_cast<T*>(a.outputs[0]);
        for (std::int64_t n = 0; n < s.batch; ++n) {
          for (std::int64_t place = 0; place < s.places; ++place) {
            for (std::int64_t c = 0; c < s.channels; ++c) {
              double sum = 0;
              s.visit(static_cast<const T*>(a.inputs[1]), n, place,
                      [&](std::int64_t element, double weight, const auto&) {
                        sum += weight * static_cast<double>(x[s.x(s.x_index(n, c, element))]);
                      });
              y[s.y(s.y_index(n, c, place))] = rounded<T>(sum);
            }
          }
        }
      });
};

constexpr auto grid_sample_gradient = []<class T>(const KernelRequest& r, T) {
  return prepared([s = Sampling(r, r.inputs[1], r.inputs[2], r.inputs[0]),
                   dx = Places(r.outputs[0]),
                   dgrid = Places(r.outputs[1])](const KernelArguments& a) {
    const T* dy = static_cast<const T*>(a.inputs[0]);
    const T* x = static_cast<const T*>(a.inputs[1]);
    T* to = static_cast<T*>(a.outputs[0]);
    T* to_grid = static_cast<T*>(a.outputs[1]);
    for (std::int64_t i = 0; to != nullptr && i < dx.count(); ++i) to[dx(i)] = T(0.0f);
    for (std::int64_t n = 0; n < s.batch; ++n) {
      for (std::int64_t place = 0; place < s.places; ++place) {
        std::array<double, 3> sums{};
        for (std::int64_t c = 0; c < s.channels; ++c) {
          const double slope = static_cast<double>(dy[s.y(s.y_index(n, c, place))]);
          s.visit(static_cast<const T*>(a.inputs[2]), n, place,
                  [&](std::int64_t element, double weight, const std::array<double, 3>& slopes) {
                    const std::int64_t index = s.x_index(n, c, element);
                    const double value = static_cast<double>(x[s.x(index)]);
                    for (std::size_t k = 0; k < 3; ++k) sums[k] += slope * value * slopes[k];
                    if (to == nullptr) return;
                    T& sum = to[dx(index)];
                    sum = rounded<T>(static_cast<double>(sum) + slope * weight);
                  });
        }
        for (std::int64_t axis = 0; to_grid != nullptr && axis < s.axes(); ++axis) {
          to_grid[dgrid(s.grid_index(n, place, axis))] =
              rounded<T>(sums[static_cast<std::size_t>(axis)]);
        }
      }
    }
  });
};

}  // namespace

void add_grid_sample(KernelList& list) {
  list.push_back(any_float_kernel("reference.grid_sample", "GridSample", grid_sample_forward));
  list.push_back(
      any_float_kernel("reference.grid_sample_grad", "GridSampleGrad", grid_sample_gradient));
}

}  // namespace tandem::reference
