// A matrix product by its strides, and the same product as cuBLASLt wants it: column-major.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/device/kernel.h"

namespace tandem::cuda {

/// One batch axis: extent and the strides of a, b and y (0 where an operand is broadcast).
struct BatchAxis {
  std::int64_t extent = 1, a = 0, b = 0, y = 0;
};

/// y[m, n] = a[m, k] b[k, n] for every index of `axes`; strides in elements.
struct Product {
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t a_m = 0, a_k = 0;
  std::int64_t b_k = 0, b_n = 0;
  std::int64_t y_m = 0, y_n = 0;
  std::vector<BatchAxis> axes;  // outermost first, extents other than 1

  std::int64_t count() const;  // number of products
};

/// numpy's matmul of operands with strided layouts. Batch axes are merged where all strides go on,
/// and become rows where b has none of them.
Product take_apart(const Operand& a, const Operand& b, const Operand& y);

/// Whether cuBLASLt can read the operand's matrices as they lie: one stride of 1, the other one not
/// shorter than a row, no batch stride below 0. `left`: a vector is a row, as in a; else a column.
bool is_readable(const Operand& operand, bool left);
/// Whether cuBLASLt can write y as it lies; `a_rank` and `b_rank` say which axes y lacks.
bool is_writable(const Operand& y, std::size_t a_rank, std::size_t b_rank);

/// A matrix in memory, element (i, j) at i + j ld; with `transposed` the operand is its transpose.
struct ColumnMajor {
  std::int64_t rows = 0, columns = 0, ld = 0;
  std::int64_t batch_stride = 0;
  bool transposed = false;
};

/// Where one call begins, in elements.
struct CallOffset {
  std::int64_t left = 0, right = 0, result = 0;
};

/// result = left right, `batch` times in a call. The product of a row-major y is the transposed
/// one: then left is b (`swapped`), and the result's rows are y's columns.
struct ColumnMajorProduct {
  ColumnMajor left, right, result;
  std::int64_t batch = 1;
  std::vector<CallOffset> calls;
  bool swapped = false;
};

/// Requires a product with m, n, k and count() above 0 whose operands are readable and writable.
/// Where y_n is 1 or n is 1, the result is `swapped`.
ColumnMajorProduct column_major(const Product& product);

/// How many calls `column_major` makes.
std::int64_t call_count(const Product& product);

}  // namespace tandem::cuda
