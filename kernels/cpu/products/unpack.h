// Rows of packed matrices as float32.
#pragma once

#include "kernels/reference/packed_codes.h"

namespace tandem {

/// Columns begin to end of row r; begin is a multiple of 8. Needs AVX2.
void unpack_row_avx2(const PackedMatrix& matrix, std::int64_t r, std::int64_t begin,
                     std::int64_t end, float* to);

/// Rows of x that `multiply_rows_avx2` takes at a time.
constexpr std::int64_t most_dot_rows = 4;

/// Whether `multiply_rows_avx2` takes such a matrix: blocks of whole vectors within a row.
bool has_row_products(const Packing& packing);

/// y[i, r] = the sum over c of x[i, c] W[r, c], for rows r from begin to end of W and i < m, where
/// m is most_dot_rows at most. Rows of x lie next to each other, those of y `y_rows` apart. For few
/// rows of x, where unpacking into memory would take longer than the product. Needs AVX2.
void multiply_rows_avx2(const PackedMatrix& matrix, std::int64_t begin, std::int64_t end,
                        const float* x, std::int64_t m, float* y, std::int64_t y_rows);

}  // namespace tandem
