// The parts of tiled attention: a block has 256 threads for a tile of 64 x 64 numbers, 4 x 4 of
// them in the registers of each thread, 16 apart.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cuda/networks/plain_attention.h"
#include "kernels/shared/block/packs.h"

namespace tandem::cuda::networks {

inline constexpr float infinity = std::numeric_limits<float>::infinity();

inline constexpr int tile = 64;   // queries and keys
inline constexpr int depth = 32;  // columns of two operands in shared memory
inline constexpr int side = 16;   // threads along each side of a tile
inline constexpr int each = tile / side;
inline constexpr int tile_threads = side * side;

// Shared memory, in floats: two operands of a product, or the rows of one; then the tile's numbers.
inline constexpr int operand_row = depth + 1;  // one apart from a multiple of the banks
inline constexpr int number_row = tile + 1;
inline constexpr int operands_at = 0;
inline constexpr int numbers_at = 2 * tile * operand_row;
inline constexpr int rows_at = numbers_at + tile * number_row;
inline constexpr int row_numbers = 3 * tile + 2 * tile_threads;
inline constexpr std::size_t tile_bytes = (rows_at + row_numbers) * sizeof(float);
static_assert(tile * tile <= 2 * tile * operand_row && tile_bytes <= 48 * 1024);

struct Tile {
  float at[each][each];
};

template <class T>
struct Head {
  const T* data;
  std::int64_t row, column;  // strides

  TANDEM_HOST_DEVICE float operator()(std::int64_t r, std::int64_t c) const {
    return widened(data[r * row + c * column]);
  }
};

template <class T>
TANDEM_HOST_DEVICE Head<T> head_of(const void* data, const HeadMap& map, std::int64_t batch,
                                   std::int64_t head) {
  return {static_cast<const T*>(data) + batch * map.batch + head * map.head, map.row, map.column};
}

template <class Tiles>
TANDEM_HOST_DEVICE inline void clear(Tiles& tiles, int thread) {
  TANDEM_UNROLL
  for (int i = 0; i < each; ++i) {
    TANDEM_UNROLL
    for (int j = 0; j < each; ++j) tiles(thread).at[i][j] = 0;
  }
}

/// tiles[i][j] += sum over c < size of a(a_first + i, c) b(b_first + j, c). Rows at and after
/// a_end or b_end count as 0. A barrier begins it.
template <class Block, class T>
TANDEM_HOST_DEVICE void add_row_products(Block& block,
                                         typename Block::template Private<Tile>& tiles,
                                         const Head<T>& a, std::int64_t a_first, std::int64_t a_end,
                                         const Head<T>& b, std::int64_t b_first, std::int64_t b_end,
                                         std::int64_t size) {
  float* const left = block.template shared<float>() + operands_at;
  float* const right = left + tile * operand_row;
  for (std::int64_t first = 0; first < size; first += depth) {
    block.sync();
    block.each([&](int thread) {
      const int c = thread % depth;
      const bool inside = first + c < size;
      for (int r = thread / depth; r < tile; r += tile_threads / depth) {
        left[r * operand_row + c] =
            inside && a_first + r < a_end ? a(a_first + r, first + c) : 0.0f;
        right[r * operand_row + c] =
            inside && b_first + r < b_end ? b(b_first + r, first + c) : 0.0f;
      }
    });
    block.sync();
    block.each([&](int thread) {
      const float* const rows = left + thread / side * operand_row;
      const float* const columns = right + thread % side * operand_row;
      for (int c = 0; c < depth; ++c) {
        float x[each], y[each];
        TANDEM_UNROLL
        for (int i = 0; i < each; ++i) {
          x[i] = rows[i * side * operand_row + c];
          y[i] = columns[i * side * operand_row + c];
        }
        TANDEM_UNROLL
        for (int i = 0; i < each; ++i) {
          TANDEM_UNROLL
          for (int j = 0; j < each; ++j) tiles(thread).at[i][j] += x[i] * y[j];
        }
      }
    });
  }
}

/// tiles[i][j] += sum over r < 64 of numbers[i][r] b(b_first + r, column + j), or of
/// numbers[r][i] where `transposed`. Rows of b from b_end on, and columns from `columns` on, count
/// as 0. A barrier begins it.
template <bool transposed, class Block, class T>
TANDEM_HOST_DEVICE void add_number_products(Block& block,
                                            typename Block::template Private<Tile>& tiles,
                                            const Head<T>& b, std::int64_t b_first,
                                            std::int64_t b_end, std::int64_t column,
                                            std::int64_t columns) {
  float* const right = block.template shared<float>() + operands_at;
  const float* const numbers = block.template shared<float>() + numbers_at;
  block.sync();
  block.each([&](int thread) {
    const int c = thread % tile;
    const bool inside = column + c < columns;
    for (int r = thread / tile; r < tile; r += tile_threads / tile) {
      right[r * tile + c] = inside && b_first + r < b_end ? b(b_first + r, column + c) : 0.0f;
    }
  });
  block.sync();
  block.each([&](int thread) {
    const int row = thread / side, own = thread % side;
    for (int r = 0; r < tile; ++r) {
      float x[each], y[each];
      TANDEM_UNROLL
      for (int i = 0; i < each; ++i) {
        const int at = row + i * side;
        x[i] = transposed ? numbers[r * number_row + at] : numbers[at * number_row + r];
        y[i] = right[r * tile + own + i * side];
      }
      TANDEM_UNROLL
      for (int i = 0; i < each; ++i) {
        TANDEM_UNROLL
        for (int j = 0; j < each; ++j) tiles(thread).at[i][j] += x[i] * y[j];
      }
    }
  });
}

/// Whether query i sees key j.
TANDEM_HOST_DEVICE inline bool is_seen(const PlainAttention& n, std::int64_t i, std::int64_t j) {
  return j < n.keys && (!n.is_causal || j <= i + n.keys - n.queries);
}

/// The score of a product, with the mask; -infinity where the key is hidden.
template <class T>
TANDEM_HOST_DEVICE inline float score_of(const PlainAttention& n, const Head<T>& mask,
                                         std::int64_t i, std::int64_t j, float product) {
  if (!is_seen(n, i, j)) return -infinity;
  const float score = n.scale * product;
  return n.is_masked ? score + mask(i, j) : score;
}

/// Which part of the work a block has: heads innermost, so that neighbours are as long.
struct TileOfWork {
  std::int64_t first = 0, column = 0, batch = 0, head = 0;  // first row and column

  TANDEM_HOST_DEVICE TileOfWork(const PlainAttention& n, std::int64_t index, std::int64_t columns) {
    const std::int64_t chunks = (columns + tile - 1) / tile;
    head = index % n.heads;
    index /= n.heads;
    batch = index % n.batch;
    index /= n.batch;
    column = index % chunks * tile;
    first = index / chunks * tile;
  }
};

/// How many there are.
inline std::int64_t tiles_of_work(const PlainAttention& n, std::int64_t rows,
                                  std::int64_t columns) {
  return n.batch * n.heads * ((rows + tile - 1) / tile) * ((columns + tile - 1) / tile);
}

/// A block for each tile of work, in strides beyond what a grid holds.
template <class Body>
void launch_tiles(GpuContext& gpu, const char* name, const Body& body, void* queue) {
  if (body.items == 0) return;
  const LaunchShape shape{
      .blocks = static_cast<unsigned>(std::min<std::int64_t>(body.items, 0x7fffffff)),
      .threads = tile_threads,
      .shared_bytes = tile_bytes};
  gpu.launch(launch_of(name, shape, body), queue);
}

}  // namespace tandem::cuda::networks
