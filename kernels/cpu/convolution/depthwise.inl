// The loops of depthwise.h for one instruction set. Included by depthwise_*.cpp under its pragma;
// TANDEM_NAMESPACE and TANDEM_WINDOW_ROWS are its own.

namespace tandem {
namespace TANDEM_NAMESPACE {
namespace {

#include "kernels/cpu/pointwise/vector_math.h"

template <bool whole>
TANDEM_INLINE V channels_at(const float* p, std::int64_t count) {
  return whole ? load(p) : load_part(p, count);
}

/// Sums of the taps of `rows` window rows from `first` on.
template <int rows, int columns, bool whole>
void sum_taps(const DepthwisePart& part, std::int64_t first) {
  const Depthwise& map = *part.map;
  const ConvolutionAxis &r = map.rows, &c = map.columns;
  const std::int64_t step = map.channels;
  const std::int64_t next_row = r.dilation * c.in * step, next_column = c.dilation * step;
  V sums[rows][columns];
#pragma GCC unroll 5
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 5
    for (int j = 0; j < columns; ++j) sums[i][j] = V{};
  }
  for (std::int64_t n = part.first_image; n < part.first_image + part.images; ++n) {
    for (std::int64_t y = 0; y < r.out; ++y) {
      const float* dy = part.dy + (n * r.out + y) * c.out * step + part.channel;
      const std::int64_t top = y * r.stride - r.pad + first * r.dilation;
      const bool all_rows = top >= 0 && top + (rows - 1) * r.dilation < r.in;
      const float* x = part.x + (n * r.in + top) * c.in * step + part.channel;
      for (std::int64_t at = 0; at < c.out; ++at, dy += step) {
        const std::int64_t left = at * c.stride - c.pad;
        const V d = channels_at<whole>(dy, part.count);
        const float* from = x + left * step;
        if (all_rows && left >= 0 && left + (columns - 1) * c.dilation < c.in) {
#pragma GCC unroll 5
          for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 5
            for (int j = 0; j < columns; ++j) {
              sums[i][j] +=
                  d * channels_at<whole>(from + i * next_row + j * next_column, part.count);
            }
          }
          continue;
        }
#pragma GCC unroll 5
        for (int i = 0; i < rows; ++i) {
          const std::int64_t row = top + i * r.dilation;
          if (row < 0 || row >= r.in) continue;
#pragma GCC unroll 5
          for (int j = 0; j < columns; ++j) {
            const std::int64_t column = left + j * c.dilation;
            if (column < 0 || column >= c.in) continue;
            sums[i][j] += d * channels_at<whole>(from + i * next_row + j * next_column, part.count);
          }
        }
      }
    }
  }
  float* dw = part.dw + first * columns * step + part.channel;
#pragma GCC unroll 5
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 5
    for (int j = 0; j < columns; ++j) {
      float* to = dw + (i * columns + j) * step;
      if (whole) {
        store(to, sums[i][j]);
      } else {
        store_part(to, sums[i][j], part.count);
      }
    }
  }
}

template <bool whole>
void sum_window(const DepthwisePart& part) {
  if (part.map->rows.window == 3) return sum_taps<3, 3, whole>(part, 0);
  if constexpr (TANDEM_WINDOW_ROWS >= 5) {
    sum_taps<5, 5, whole>(part, 0);
  } else {
    sum_taps<2, 5, whole>(part, 0);
    sum_taps<2, 5, whole>(part, 2);
    sum_taps<1, 5, whole>(part, 4);
  }
}

void weights(const DepthwisePart& part) {
  if (part.count >= width) {
    sum_window<true>(part);
  } else {
    sum_window<false>(part);
  }
}

}  // namespace
}  // namespace TANDEM_NAMESPACE
}  // namespace tandem
