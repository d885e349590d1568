#include "kernels/cuda/pointwise/copies.h"

#include "kernels/cuda/pointwise/axes.h"
#include "kernels/cuda/pointwise/words.h"
#include "kernels/shared/block/block.h"
#include "kernels/shared/block/numbers.h"

namespace tandem::cuda {
namespace {

// Several words are read before the first is written, so that enough of them are on their way.
template <class Word>
struct CopyKernel {
  CopyArguments p;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    constexpr int at_once = 4;
    const CopyPiece& piece = p.pieces[block.index_y()];
    const std::int64_t step = std::int64_t{block.blocks()} * block.threads();
    const std::int64_t begin = std::int64_t{block.index()} * block.threads();
    block.each([&](int thread) {
      const Word* from = static_cast<const Word*>(piece.from);
      Word* to = static_cast<Word*>(piece.to);
      for (std::int64_t unit = begin + thread; unit < piece.units; unit += at_once * step) {
        Word words[at_once];
        std::int64_t targets[at_once];
        TANDEM_UNROLL
        for (int i = 0; i < at_once; ++i) {
          std::int64_t at[2] = {};
          if (unit + i * step < piece.units) {
            piece.walk.locate(0, piece.walk.axes, unit + i * step, 1, at);
            detail::check_access(from + at[0], sizeof(Word));
            detail::check_access(to + at[1], sizeof(Word));
            words[i] = from[at[0]];
          }
          targets[i] = at[1];
        }
        TANDEM_UNROLL
        for (int i = 0; i < at_once; ++i) {
          if (unit + i * step < piece.units) to[targets[i]] = words[i];
        }
      }
    });
  }
};

// Reads run along x's rows, writes along y's. A row of the tile has one bank more than it needs, so
// that the 32 elements of a column lie in as many banks.
template <class T>
struct TransposeKernel {
  static constexpr int side = tile_side(sizeof(T));
  static constexpr int pitch = side + (sizeof(T) < 4 ? 4 / static_cast<int>(sizeof(T)) : 1);
  static constexpr std::size_t shared_bytes = sizeof(T) * side * pitch;

  TransposeArguments p;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    T* const tile = block.template shared<T>();  // [column of y][row of y]
    const T* const x = static_cast<const T*>(p.from);
    T* const y = static_cast<T*>(p.to);
    for (std::int64_t number = block.index(); number < p.tiles; number += block.blocks()) {
      const std::int64_t matrix_row = number / p.tile_columns.extent;
      const std::int64_t column0 = number % p.tile_columns.extent * side;
      const std::int64_t row0 = matrix_row % p.tile_rows.extent * side;
      std::int64_t at[2] = {};
      p.walk.locate(0, p.walk.axes, matrix_row / p.tile_rows.extent, 1, at);
      const int rows = static_cast<int>(p.rows - row0 < side ? p.rows - row0 : side);
      const int columns = static_cast<int>(p.columns - column0 < side ? p.columns - column0 : side);
      block.each([&](int thread) {
        const int r = thread % side;
        if (r >= rows) return;
        const T* from = x + at[0] + row0 + r;
        for (int c = thread / side; c < columns; c += block.threads() / side) {
          tile[c * pitch + r] = from[(column0 + c) * p.from_stride];
        }
      });
      block.sync();
      block.each([&](int thread) {
        const int c = thread % side;
        if (c >= columns) return;
        T* to = y + at[1] + column0 + c;
        for (int r = thread / side; r < rows; r += block.threads() / side) {
          to[(row0 + r) * p.to_stride] = tile[c * pitch + r];
        }
      });
      block.sync();
    }
  }
};

}  // namespace

void launch_copy(GpuContext& gpu, const CopyArguments& arguments, int word,
                 const LaunchShape& shape, void* queue) {
  with_word(word, [&](auto tag) {
    const CopyKernel<decltype(tag)> body{arguments};
    gpu.launch(launch_of("copy", shape, body), queue);
  });
}

void launch_transpose(GpuContext& gpu, const TransposeArguments& arguments, int bytes,
                      const LaunchShape& shape, void* queue) {
  with_size(static_cast<std::size_t>(bytes), [&](auto tag) {
    const TransposeKernel<decltype(tag)> body{arguments};
    LaunchShape own = shape;
    own.shared_bytes = body.shared_bytes;
    gpu.launch(launch_of("transpose", own, body), queue);
  });
}

}  // namespace tandem::cuda
