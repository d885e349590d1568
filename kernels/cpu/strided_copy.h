// Copies elements of any size from one strided layout to another: long runs, or transposed in small
// blocks.
#pragma once

#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pointwise/vector_functions.h"
#include "kernels/cpu/strided.h"

namespace tandem {

class StridedCopy {
 public:
  StridedCopy() = default;
  /// Strides in elements, axis by axis; offsets are added to the addresses given to `run`.
  StridedCopy(const Shape& shape, std::vector<std::int64_t> from, std::vector<std::int64_t> to,
              std::size_t element_bytes, const VectorFunctions& functions, int threads,
              std::int64_t from_offset = 0, std::int64_t to_offset = 0);

  void run(const void* from, void* to) const;
  std::int64_t elements() const { return elements_; }

 private:
  void run_part(const char* from, char* to, Range units) const;

  static constexpr int max_axes = 10;
  const VectorFunctions* functions_ = nullptr;
  std::int64_t elements_ = 0, bytes_ = 4, from_offset_ = 0, to_offset_ = 0;
  int axes_ = 0;
  std::int64_t extents_[max_axes] = {}, from_[max_axes] = {}, to_[max_axes] = {};
  int inner_axes_ = 1;  // 1: runs along the last axis; 2: the last two are transposed
  std::int64_t blocks_ = 1, block_ = 0;  // the first of the inner axes is cut into blocks
  std::int64_t units_ = 0;
  int parts_ = 1;
};

}  // namespace tandem
