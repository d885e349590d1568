// Elements from one strided place to another, several pieces in one launch: by words of up to 16
// bytes, or transposed through shared memory.
#pragma once

#include <vector>

#include "kernels/cuda/context.h"
#include "kernels/shared/block/walk.h"

namespace tandem::cuda {

/// Copies `units` words. Strides in words; places: from, to.
struct CopyPiece {
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t units = 0;
  Walk<2> walk;
};

inline constexpr int pieces_at_once = 10;

struct CopyArguments {
  CopyPiece pieces[pieces_at_once];
};

/// Blocks along y are the pieces. `word`: 1, 2, 4, 8 or 16 bytes, to which all addresses are
/// aligned.
void launch_copy(GpuContext& gpu, const CopyArguments& arguments, int word,
                 const LaunchShape& shape, void* queue);

/// y[..., r, c] = x[..., c, r] in tiles: x is contiguous along r, y along c.
struct TransposeArguments {
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t rows = 0, columns = 0;  // extents of y
  std::int64_t from_stride = 0;        // stride of x along c
  std::int64_t to_stride = 0;          // stride of y along r
  std::int64_t tiles = 0;              // number of tiles of all matrices
  Divisor tile_columns, tile_rows;     // tiles along a matrix's columns and rows
  Walk<2> walk;                        // over the matrices
};

/// Elements of a tile's side.
constexpr int tile_side(std::size_t element_bytes) {
  return element_bytes == 1 ? 128 : element_bytes == 2 ? 64 : 32;
}

/// `bytes` of an element: 1, 2, 4 or 8.
void launch_transpose(GpuContext& gpu, const TransposeArguments& arguments, int bytes,
                      const LaunchShape& shape, void* queue);

/// A copy of elements of one shape, prepared for any alignment of its two addresses.
class StridedCopy {
 public:
  /// Strides in elements; offsets are added to the addresses given to `run`. At most 8 axes of
  /// more than one element.
  StridedCopy(const Shape& shape, const std::vector<std::int64_t>& from,
              const std::vector<std::int64_t>& to, std::size_t element_bytes, int multiprocessors,
              std::int64_t from_offset = 0, std::int64_t to_offset = 0);

  std::int64_t elements() const { return elements_; }

 private:
  friend class CopyBatch;

  std::int64_t elements_ = 0, from_offset_ = 0, to_offset_ = 0;  // offsets in bytes
  int element_bytes_ = 4, most_word_ = 4;
  int multiprocessors_ = 1;
  bool transposes_ = false;
  TransposeArguments transpose_;
  CopyPiece pieces_[5];  // for words of 2^i bytes; those above the element's may be missing
};

/// Collects copies and launches as many as it can at once. `flush` ends it.
class CopyBatch {
 public:
  CopyBatch(GpuContext& gpu, void* queue) : gpu_(gpu), queue_(queue) {}
  void add(const StridedCopy& copy, const void* from, void* to);
  void flush();

 private:
  GpuContext& gpu_;
  void* queue_;
  int count_ = 0, word_ = 0;
  std::int64_t most_units_ = 0;
  int multiprocessors_ = 1;
  CopyArguments arguments_;
};

}  // namespace tandem::cuda
