// RoiAlign and its gradient.
#include "engine/operators/roi_pooling.h"
#include "kernels/reference/checked_index.h"
#include "kernels/reference/network_support.h"

namespace tandem::reference {
namespace {

struct Regions {
  Places x, rois, batches, y;
  DType index_type;
  Shape shape;  // shape of x
  std::int64_t count = 0, height = 0, width = 0, sampling_ratio = 0;
  double scale = 1, offset = 0;
  bool largest = false, half_pixel = false;
  std::int32_t node = 0;

  Regions(const KernelRequest& r, std::size_t first, const Operand& y_operand)
      : x(r.inputs[first]),
        rois(r.inputs[first + 1]),
        batches(r.inputs[first + 2]),
        y(y_operand),
        index_type(r.inputs[first + 2].type.dtype),
        shape(r.inputs[first].type.shape),
        count(y_operand.type.shape[0]),
        height(y_operand.type.shape[2]),
        width(y_operand.type.shape[3]),
        sampling_ratio(r.attributes().integer("sampling_ratio")),
        scale(r.attributes().number("spatial_scale")),
        largest(r.attributes().text("mode") == "max"),
        half_pixel(r.attributes().flag("half_pixel")),
        node(r.node_index) {
    offset = half_pixel ? 0.5 : 0;
  }

  /// For each bin of a region: bin(index in y of channel 0's bin, samples), and for each of its
  /// samples tap(index in x of channel 0's element, weight) four times.
  template <class T, class Tap, class Bin>
  void visit(const T* places, const void* indices, const StepContext* context, Bin bin,
             Tap tap) const {
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t batch =
          checked_index(indices, batches(r), index_type, shape[0], node, context);
      const auto edge = [&](std::int64_t k) {
        return static_cast<double>(places[rois(r * 4 + k)]) * scale - offset;
      };
      const RoiAxis rows(edge(1), edge(3), height, sampling_ratio, half_pixel);
      const RoiAxis columns(edge(0), edge(2), width, sampling_ratio, half_pixel);
      for (std::int64_t i = 0; i < height; ++i) {
        for (std::int64_t j = 0; j < width; ++j) {
          const std::int64_t index = (r * shape[1] * height + i) * width + j;
          bin(index, batch < 0 ? 0 : rows.count * columns.count);
          for (std::int64_t p = 0; batch >= 0 && p < rows.count; ++p) {
            for (std::int64_t q = 0; q < columns.count; ++q) {
              const RoiTaps a(rows.at(i, p), shape[2]), b(columns.at(j, q), shape[3]);
              for (std::size_t s = 0; s < 4; ++s) {
                const std::size_t u = s / 2, v = s % 2;
                tap(index, (batch * shape[1] * shape[2] + a.places[u]) * shape[3] + b.places[v],
                    a.weights[u] * b.weights[v]);
              }
            }
          }
        }
      }
    }
  }
  std::int64_t y_channel() const { return height * width; }
  std::int64_t x_channel() const { return shape[2] * shape[3]; }
};

constexpr auto roi_align_forward = []<class T>(const KernelRequest& request, T) {
  return prepared([r = Regions(request, 0, request.outputs[0])](const KernelArguments& a) {
    const T* x = static_cast<const T*>(a.inputs[0]);
    T* y = static_cast<T*>(a.outputs[0]);
    for (std::int64_t c = 0; c < r.shape[1]; ++c) {
      const std::int64_t y_channel = c * r.y_channel(), x_channel = c * r.x_channel();
      double value = 0;
      std::int64_t last = -1, samples = 0;
      bool is_first = true;
      const auto finish = [&] {
        if (last < 0) return;
        if (!r.largest && samples > 0) value /= static_cast<double>(samples);
        y[r.y(last + y_channel)] = rounded<T>(value);
      };
      r.visit(
          static_cast<const T*>(a.inputs[1]), a.inputs[2], a.context,
          [&](std::int64_t index, std::int64_t count) {
            finish();
            last = index;
            samples = count;
            value = 0;
            is_first = true;
          },
          [&](std::int64_t, std::int64_t element, double weight) {
            const double part = weight * static_cast<double>(x[r.x(element + x_channel)]);
            if (!r.largest) {
              value += part;
            } else if (is_first || part > value || std::isnan(part)) {
              value = part;
            }
            is_first = false;
          });
      finish();
    }
  });
};

constexpr auto roi_align_gradient = []<class T>(const KernelRequest& request, T) {
  return prepared([r = Regions(request, 1, request.inputs[0]),
                   dx = Places(request.outputs[0])](const KernelArguments& a) {
    const T* dy = static_cast<const T*>(a.inputs[0]);
    const T* x = static_cast<const T*>(a.inputs[1]);
    T* to = static_cast<T*>(a.outputs[0]);
    for (std::int64_t i = 0; i < dx.count(); ++i) to[dx(i)] = T(0.0f);
    for (std::int64_t c = 0; c < r.shape[1]; ++c) {
      const std::int64_t y_channel = c * r.y_channel(), x_channel = c * r.x_channel();
      const auto add = [&](std::int64_t element, double slope) {
        T& sum = to[dx(element + x_channel)];
        sum = rounded<T>(static_cast<double>(sum) + slope);
      };
      double slope = 0, value = 0, weight_there = 0;
      std::int64_t samples = 0, place = -1;
      bool is_first = true;
      const auto finish = [&] {
        if (r.largest && place >= 0) add(place, slope * weight_there);
      };
      r.visit(
          static_cast<const T*>(a.inputs[2]), a.inputs[3], a.context,
          [&](std::int64_t index, std::int64_t count) {
            finish();
            samples = count;
            slope = static_cast<double>(dy[r.y(index + y_channel)]);
            place = -1;
            is_first = true;
          },
          [&](std::int64_t, std::int64_t element, double weight) {
            if (!r.largest) {
              if (weight != 0) add(element, slope * weight / static_cast<double>(samples));
              return;
            }
            const double part = weight * static_cast<double>(x[r.x(element + x_channel)]);
            if (is_first || part > value || std::isnan(part)) {
              value = part;
              place = element;
              weight_there = weight;
            }
            is_first = false;
          });
      finish();
    }
  });
};

}  // namespace

void add_roi_align(KernelList& list) {
  list.push_back(any_float_kernel("reference.roi_align", "RoiAlign", roi_align_forward));
  list.push_back(any_float_kernel("reference.roi_align_grad", "RoiAlignGrad", roi_align_gradient));
}

}  // namespace tandem::reference
