// MaxRoiPool: corners rounded to elements, bins between multiples of their common extent.
#include <algorithm>
#include <cmath>

#include "kernels/reference/checked_index.h"
#include "kernels/reference/network_support.h"

namespace tandem::reference {
namespace {

struct Bins {
  std::int64_t start = 0;
  double bin = 1;

  // The region has its last element, too, and one at least.
  Bins(double begin, double end, std::int64_t bins) {
    const auto rounded = [](double x) {
      return std::isnan(x) ? 0 : std::clamp(std::round(x), -1e9, 1e9);
    };
    start = static_cast<std::int64_t>(rounded(begin));
    bin = std::max(rounded(end) - rounded(begin) + 1, 1.0) / static_cast<double>(bins);
  }
  std::int64_t first(std::int64_t b, std::int64_t extent) const {
    const auto at = static_cast<std::int64_t>(std::floor(static_cast<double>(b) * bin));
    return std::clamp<std::int64_t>(at + start, 0, extent);
  }
  std::int64_t end(std::int64_t b, std::int64_t extent) const {
    const auto at = static_cast<std::int64_t>(std::ceil(static_cast<double>(b + 1) * bin));
    return std::clamp<std::int64_t>(at + start, 0, extent);
  }
};

constexpr auto pool = []<class T>(const KernelRequest& r, T) {
  return prepared([x = Places(r.inputs[0]), rois = Places(r.inputs[1]), y = Places(r.outputs[0]),
                   places = Places(r.outputs[1]), shape = r.inputs[0].type.shape,
                   bins = r.outputs[0].type.shape, has_places = r.outputs[1].present,
                   scale = r.attributes().number("spatial_scale"),
                   node = r.node_index](const KernelArguments& a) {
    const T* from = static_cast<const T*>(a.inputs[0]);
    const T* corners = static_cast<const T*>(a.inputs[1]);
    for (std::int64_t region = 0; region < bins[0]; ++region) {
      const auto number = [&](std::int64_t k) {
        return static_cast<double>(corners[rois(region * 5 + k)]);
      };
      const double given = number(0);
      std::int64_t batch = given >= 0 ? static_cast<std::int64_t>(std::min(given, 1e9)) : -1;
      if (batch < 0 || batch >= shape[0]) {
        report(a, ErrorWord::index_out_of_range, node, batch);
        batch = std::clamp<std::int64_t>(batch, 0, shape[0] - 1);
      }
      const Bins rows(number(2) * scale, number(4) * scale, bins[2]);
      const Bins columns(number(1) * scale, number(3) * scale, bins[3]);
      for (std::int64_t i = 0; i < bins[1] * bins[2] * bins[3]; ++i) {
        const std::int64_t column = i % bins[3], row = i / bins[3] % bins[2];
        const std::int64_t channel = i / bins[3] / bins[2];
        const std::int64_t plane = (batch * shape[1] + channel) * shape[2];
        std::int64_t place = absent_id_of(DType::int64);
        double largest = 0;
        for (std::int64_t h = rows.first(row, shape[2]); h < rows.end(row, shape[2]); ++h) {
          for (std::int64_t w = columns.first(column, shape[3]); w < columns.end(column, shape[3]);
               ++w) {
            const std::int64_t element = (plane + h) * shape[3] + w;
            const double value = static_cast<double>(from[x(element)]);
            if (place >= 0 && !(value > largest || std::isnan(value))) continue;
            largest = value;
            place = element;
          }
        }
        const std::int64_t at = region * bins[1] * bins[2] * bins[3] + i;
        if (a.outputs[0] != nullptr) static_cast<T*>(a.outputs[0])[y(at)] = rounded<T>(largest);
        if (has_places) static_cast<std::int64_t*>(a.outputs[1])[places(at)] = place;
      }
    }
  });
};

}  // namespace

void add_max_roi_pool(KernelList& list) {
  list.push_back(any_float_kernel("reference.max_roi_pool", "MaxRoiPool", pool));
}

}  // namespace tandem::reference
