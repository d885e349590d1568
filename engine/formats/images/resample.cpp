// Pillow's src/libImaging/Resample.c, in form: `precompute_coeffs`, `normalize_coeffs_8bpc` and the
// two passes.
#include "engine/formats/images/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#pragma GCC optimize("O3")  // the loops below vectorise only so

namespace tandem {
namespace {

constexpr int fraction_bits = 32 - 8 - 2;

/// For each new element the first old one, how many count, and their weights.
template <class Weight>
struct Taps {
  std::int64_t each = 0;  // room for weights of one
  std::vector<std::int64_t> first, count;
  std::vector<Weight> weights;
  std::vector<double> sums;

  void make(std::int64_t from, std::int64_t to) {
    const double scale = static_cast<double>(from) / static_cast<double>(to);
    const double filter = std::max(scale, 1.0);  // half of its width: the triangle reaches 1
    each = static_cast<std::int64_t>(std::ceil(filter)) * 2 + 1;
    const auto count_of_new = static_cast<std::size_t>(to);
    first.resize(count_of_new);
    count.resize(count_of_new);
    weights.resize(count_of_new * static_cast<std::size_t>(each));
    sums.resize(static_cast<std::size_t>(each));
    for (std::int64_t i = 0; i < to; ++i) {
      const double centre = (static_cast<double>(i) + 0.5) * scale;
      const auto low = std::max<std::int64_t>(static_cast<std::int64_t>(centre - filter + 0.5), 0);
      const auto high =
          std::min<std::int64_t>(static_cast<std::int64_t>(centre + filter + 0.5), from);
      double total = 0;
      for (std::int64_t x = low; x < high; ++x) {
        const double at = std::abs((static_cast<double>(x) - centre + 0.5) * (1.0 / filter));
        const double weight = at < 1.0 ? 1.0 - at : 0.0;
        sums[static_cast<std::size_t>(x - low)] = weight;
        total += weight;
      }
      const auto n = static_cast<std::size_t>(i);
      first[n] = low;
      count[n] = high - low;
      Weight* own = weights.data() + n * static_cast<std::size_t>(each);
      for (std::int64_t k = 0; k < high - low; ++k) {
        const double weight = sums[static_cast<std::size_t>(k)] / (total != 0 ? total : 1);
        if constexpr (std::is_integral_v<Weight>) {
          own[k] = static_cast<Weight>(0.5 + weight * (1 << fraction_bits));
        } else {
          own[k] = static_cast<Weight>(weight);
        }
      }
    }
  }
};

std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> fraction_bits, 0, 255));
}

template <class T>
using SumOf = std::conditional_t<std::is_integral_v<T>, std::int32_t, float>;
template <class T>
constexpr SumOf<T> start_of_sum = std::is_integral_v<T> ? SumOf<T>(1 << (fraction_bits - 1)) : 0;

template <class T>
T rounded(SumOf<T> sum) {
  if constexpr (std::is_integral_v<T>) {
    return to_byte(sum);
  } else {
    return sum;
  }
}

template <class T>
void along_row(const T* from, const Taps<SumOf<T>>& taps, std::int64_t width, T* to) {
  for (std::int64_t x = 0; x < width; ++x) {
    const auto n = static_cast<std::size_t>(x);
    const T* at = from + taps.first[n];
    const SumOf<T>* weights = taps.weights.data() + n * static_cast<std::size_t>(taps.each);
    SumOf<T> sum = start_of_sum<T>;
    for (std::int64_t k = 0; k < taps.count[n]; ++k)
      sum += static_cast<SumOf<T>>(at[k]) * weights[k];
    to[x] = rounded<T>(sum);
  }
}

template <class T>
void resample_all(const T* from, const PlanePart& part, std::int64_t height, std::int64_t width,
                  T* to) {
  thread_local Taps<SumOf<T>> columns, rows;
  thread_local std::vector<T>
      narrow;  // a plane that is as wide as the result, and as high as the part
  thread_local std::vector<SumOf<T>> sums;
  const bool keeps_width = width == part.width, keeps_height = height == part.height;
  if (!keeps_width) columns.make(part.width, width);
  if (!keeps_height) rows.make(part.height, height);
  narrow.resize(static_cast<std::size_t>(part.height * width));
  sums.resize(static_cast<std::size_t>(width));
  for (std::int64_t c = 0; c < part.channels; ++c) {
    const T* plane = from + c * part.plane + part.top * part.row + part.left;
    T* middle = keeps_height ? to : narrow.data();
    for (std::int64_t y = 0; y < part.height; ++y) {
      if (keeps_width) {
        std::memcpy(middle + y * width, plane + y * part.row,
                    sizeof(T) * static_cast<std::size_t>(width));
      } else {
        along_row(plane + y * part.row, columns, width, middle + y * width);
      }
    }
    for (std::int64_t y = 0; y < height && !keeps_height; ++y) {
      const auto n = static_cast<std::size_t>(y);
      std::fill(sums.begin(), sums.end(), start_of_sum<T>);
      const SumOf<T>* weights = rows.weights.data() + n * static_cast<std::size_t>(rows.each);
      SumOf<T>* const sum = sums.data();
      for (std::int64_t k = 0; k < rows.count[n]; ++k) {
        const T* line = narrow.data() + (rows.first[n] + k) * width;
        const SumOf<T> weight = weights[k];
        for (std::int64_t x = 0; x < width; ++x) sum[x] += static_cast<SumOf<T>>(line[x]) * weight;
      }
      for (std::int64_t x = 0; x < width; ++x) to[y * width + x] = rounded<T>(sum[x]);
    }
    to += height * width;
  }
}

}  // namespace

void resample_planes(const std::uint8_t* from, const PlanePart& part, std::int64_t height,
                     std::int64_t width, std::uint8_t* to) {
  resample_all(from, part, height, width, to);
}

void resample_planes(const float* from, const PlanePart& part, std::int64_t height,
                     std::int64_t width, float* to) {
  resample_all(from, part, height, width, to);
}

}  // namespace tandem
