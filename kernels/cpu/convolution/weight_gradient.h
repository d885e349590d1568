// Weight gradients of convolutions on channels-last maps, as outer products of pixels: a tile of a
// tap's [in channels, out channels] stays in registers over the rows of a block.
#pragma once

#include <cstdint>

#include "kernels/cpu/convolution/convolution_axis.h"

namespace tandem {

/// x [images, rows.in, columns.in, in_channels], dy alike with out and out_channels, dw [window,
/// window, in_channels, out_channels]. out_channels are a multiple of 16.
struct WeightGradient {
  std::int64_t in_channels = 0, out_channels = 0;
  ConvolutionAxis rows, columns;
  std::int64_t in_tiles = 1;   // tiles of nearly as many input channels each
  std::int64_t out_tiles = 1;  // tiles of two vectors each, but for the last

  std::int64_t taps() const { return rows.window * columns.window; }
  /// One item is one tile of one tap; taps are innermost.
  std::int64_t items() const { return out_tiles * in_tiles * taps(); }
};

/// Neighbours in memory.
struct FloatRange {
  const float* begin = nullptr;
  std::int64_t count = 0;
};

/// Some items of dw, summed over some rows of dy.
struct WeightGradientPart {
  const WeightGradient* map;
  const float *x, *dy;
  float* dw;
  std::int64_t first_row = 0, rows = 0;  // counted over all images
  std::int64_t first_item = 0, items = 0;
  bool add = false;            // adds to what dw holds
  FloatRange next_x, next_dy;  // what the next part reads; it is prefetched meanwhile
};

/// The most input channels of a tile, and the lanes of a vector.
struct WeightTileLimits {
  std::int64_t in_channels, lanes;
};
constexpr WeightTileLimits weight_tile_avx2{6, 8}, weight_tile_avx512{14, 16};

void weight_gradient_avx2(const WeightGradientPart& part);
void weight_gradient_avx512(const WeightGradientPart& part);

}  // namespace tandem
