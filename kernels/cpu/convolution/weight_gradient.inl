// The loops of weight_gradient.h for one instruction set. Included by weight_gradient_*.cpp under its
// pragma; TANDEM_NAMESPACE, TANDEM_WEIGHT_TILE and TANDEM_PIXELS_AHEAD are its own.

namespace tandem {
namespace TANDEM_NAMESPACE {
namespace {

#include "kernels/cpu/pointwise/vector_math.h"

constexpr int most_channels = static_cast<int>(TANDEM_WEIGHT_TILE.in_channels);
constexpr std::int64_t pixels_ahead = TANDEM_PIXELS_AHEAD;

struct WeightTile {
  std::int64_t row_tap, column_tap;
  std::int64_t in, in_count, out, vectors;  // channels
};

WeightTile tile_of(const WeightGradient& map, std::int64_t item) {
  const std::int64_t tap = item % map.taps(), tile = item / map.taps();
  const std::int64_t in = tile % map.in_tiles, out = tile / map.in_tiles;
  const auto channel = [&](std::int64_t i) { return i * map.in_channels / map.in_tiles; };
  const std::int64_t vectors = map.out_channels / width - 2 * out;
  return {.row_tap = tap / map.columns.window,
          .column_tap = tap % map.columns.window,
          .in = channel(in),
          .in_count = channel(in + 1) - channel(in),
          .out = 2 * width * out,
          .vectors = vectors < 2 ? vectors : 2};
}

/// Sums over all pixels of a block. The rows of an image are one loop: a processor does not foresee
/// the end of a row, and what it guesses there costs as much as two pixels.
template <int channels, int vectors>
void sum_weight_tile(const WeightGradientPart& part, const WeightTile& tile) {
  const WeightGradient& map = *part.map;
  const ConvolutionAxis &r = map.rows, &c = map.columns;
  const MetOutputs rows(r, tile.row_tap), columns(c, tile.column_tap);
  const std::int64_t in = map.in_channels, out = map.out_channels;
  const std::int64_t length = columns.end - columns.begin;
  const std::int64_t left = columns.begin * c.stride + c.first_input(tile.column_tap);
  const std::int64_t x_step = c.stride * in, x_next_row = r.stride * c.in * in - length * x_step;
  const std::int64_t dy_step = out, dy_next_row = (c.out - length) * out;
  float* const dw =
      part.dw + ((tile.row_tap * c.window + tile.column_tap) * in + tile.in) * out + tile.out;
  V sums[channels][vectors];
#pragma GCC unroll 16
  for (int i = 0; i < channels; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) {
      sums[i][j] = V{};
      if (part.add) __builtin_prefetch(dw + i * out + j * width, 1);
    }
  }
  const std::int64_t part_end = part.first_row + part.rows;
  for (std::int64_t row = part.first_row; row < part_end;) {
    const std::int64_t image = row / r.out, image_end = (image + 1) * r.out;
    const std::int64_t end = part_end < image_end ? part_end : image_end;
    const std::int64_t above = row - image * r.out, below = end - image * r.out;
    const std::int64_t top = above < rows.begin ? rows.begin : above;
    const std::int64_t bottom = below < rows.end ? below : rows.end;
    row = end;
    if (top >= bottom || length == 0) continue;
    const std::int64_t from = image * r.in + top * r.stride + r.first_input(tile.row_tap);
    const float* x = part.x + (from * c.in + left) * in + tile.in;
    const float* dy =
        part.dy + ((image * r.out + top) * c.out + columns.begin) * out + tile.out;
    std::int64_t to_row_end = length;
    for (std::int64_t pixels = (bottom - top) * length; pixels > 0; --pixels) {
      V d[vectors];
      if (pixels_ahead > 0) __builtin_prefetch(x + pixels_ahead * x_step);
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) {
        d[j] = load(dy + j * width);
        if (pixels_ahead > 0) __builtin_prefetch(dy + pixels_ahead * dy_step + j * width);
      }
#pragma GCC unroll 16
      for (int i = 0; i < channels; ++i) {
        const V value = all(x[i]);
#pragma GCC unroll 2
        for (int j = 0; j < vectors; ++j) sums[i][j] += value * d[j];
      }
      const std::int64_t at_end = -static_cast<std::int64_t>(--to_row_end == 0);  // all bits
      x += x_step + (x_next_row & at_end);
      dy += dy_step + (dy_next_row & at_end);
      to_row_end += length & at_end;
    }
  }
  if (part.add) {
#pragma GCC unroll 16
    for (int i = 0; i < channels; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) sums[i][j] += load(dw + i * out + j * width);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < channels; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) store(dw + i * out + j * width, sums[i][j]);
  }
}

/// Tiles of equal parts of more channels than one holds have half of the most at least.
template <int channels, int vectors>
void choose_weight_tile(const WeightGradientPart& part, const WeightTile& tile) {
  if (tile.in_count == channels) return sum_weight_tile<channels, vectors>(part, tile);
  if constexpr (2 * channels > most_channels) {
    choose_weight_tile<channels - 1, vectors>(part, tile);
  }
}

/// Piece `i` of `pieces` of what is needed next, to the second cache.
void fetch_piece(const FloatRange& next, std::int64_t i, std::int64_t pieces) {
  constexpr std::int64_t line = 16;
  const std::int64_t lines = (next.count + line - 1) / line;
  const std::int64_t end = lines * (i + 1) / pieces;
  for (std::int64_t at = lines * i / pieces; at < end; ++at) {
    __builtin_prefetch(next.begin + at * line, 0, 2);
  }
}

void sum_weights(const WeightGradientPart& part) {
  for (std::int64_t i = part.first_item; i < part.first_item + part.items; ++i) {
    fetch_piece(part.next_x, i - part.first_item, part.items);
    fetch_piece(part.next_dy, i - part.first_item, part.items);
    const WeightTile tile = tile_of(*part.map, i);
    if (tile.vectors == 2) {
      choose_weight_tile<most_channels, 2>(part, tile);
    } else {
      choose_weight_tile<most_channels, 1>(part, tile);
    }
  }
}

}  // namespace
}  // namespace TANDEM_NAMESPACE
}  // namespace tandem
