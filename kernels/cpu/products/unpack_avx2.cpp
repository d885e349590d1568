// Rows of packed matrices with AVX2. The order of operations is that of `unpacked<float>`, so that
// both give the same bits.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "kernels/cpu/products/unpack.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")

namespace tandem {
namespace {

constexpr std::int64_t step = 8;  // numbers of one vector

// Eight codes of one byte each, of which the upper bytes are not looked at.
__m256 as_floats(__m128i codes, bool is_signed) {
  return _mm256_cvtepi32_ps(is_signed ? _mm256_cvtepi8_epi32(codes) : _mm256_cvtepu8_epi32(codes));
}

// Eight numbers of a row without codes, from column c on.
__m256 load_eight(const void* row, DType dtype, std::int64_t c) {
  if (dtype == DType::float32) return _mm256_loadu_ps(static_cast<const float*>(row) + c);
  const auto* const from = static_cast<const std::uint16_t*>(row) + c;
  const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  if (dtype == DType::float16) return _mm256_cvtph_ps(eight);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(eight), 16));
}

// Columns begin to end of a row without codes. Returns the first column that is left.
std::int64_t widen_row(const PackedMatrix& matrix, std::int64_t r, std::int64_t begin,
                       std::int64_t end, float* to) {
  const void* const row = matrix.row(r);
  std::int64_t c = begin;
  for (; c + step <= end; c += step)
    _mm256_storeu_ps(to + (c - begin), load_eight(row, matrix.format.data, c));
  return c;
}

// The numbers that codes of 4 bits stand for, before the scale.
struct Nibbles {
  __m256 low, high;  // the two halves of a table
  __m256 zero;
  bool has_table, is_signed, high_first;

  // Codes of one byte each.
  __m256 numbers(__m128i codes) const {
    const __m256i wide = _mm256_cvtepu8_epi32(codes);
    if (!has_table) return _mm256_sub_ps(_mm256_cvtepi32_ps(wide), zero);
    const __m256 is_high = _mm256_castsi256_ps(_mm256_slli_epi32(wide, 28));
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, wide),
                            _mm256_permutevar8x32_ps(high, wide), is_high);
  }
};

// Sixteen bytes of codes of 4 bits, as 32 bytes in their order.
void spread_nibbles(const std::uint8_t* from, bool is_signed, bool high_first, __m128i (&to)[2]) {
  const __m128i mask = _mm_set1_epi8(15);
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  __m128i first = _mm_and_si128(bytes, mask);
  __m128i second = _mm_and_si128(_mm_srli_epi16(bytes, 4), mask);
  if (is_signed) {  // two's complement of 4 bits: code - 16 where code >= 8, which is (code ^ 8) -
                    // 8
    const __m128i sign = _mm_set1_epi8(8);
    first = _mm_xor_si128(first, sign);
    second = _mm_xor_si128(second, sign);
  }
  if (high_first) std::swap(first, second);
  to[0] = _mm_unpacklo_epi8(first, second);
  to[1] = _mm_unpackhi_epi8(first, second);
}

// The columns of one block, all with one scale and zero point.
std::int64_t nibble_block(const PackedMatrix& matrix, const std::uint8_t* row, std::int64_t begin,
                          std::int64_t end, float scale, float zero, float* to) {
  const PackedFormat& format = matrix.format;
  const float* table = packed_table(format.kind).data();
  const Nibbles nibbles{_mm256_loadu_ps(table),
                        _mm256_loadu_ps(table + 8),
                        _mm256_set1_ps(zero + (format.is_signed ? 8.0f : 0.0f)),
                        format.has_table,
                        format.is_signed,
                        format.high_first};
  const __m256 factor = _mm256_set1_ps(scale);
  std::int64_t c = begin;
  for (; c + 32 <= end; c += 32) {
    __m128i codes[2];
    spread_nibbles(row + c / 2, format.is_signed, format.high_first, codes);
    for (int half = 0; half < 2; ++half) {
      float* const at = to + (c - begin) + 16 * half;
      _mm256_storeu_ps(at, _mm256_mul_ps(nibbles.numbers(codes[half]), factor));
      _mm256_storeu_ps(at + 8,
                       _mm256_mul_ps(nibbles.numbers(_mm_srli_si128(codes[half], 8)), factor));
    }
  }
  return c;
}

std::int64_t byte_block(const PackedMatrix& matrix, const std::uint8_t* row, std::int64_t begin,
                        std::int64_t end, float scale, float zero, float* to) {
  const __m256 factor = _mm256_set1_ps(scale), less = _mm256_set1_ps(zero);
  std::int64_t c = begin;
  for (; c + step <= end; c += step) {
    const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + c));
    const __m256 x = _mm256_sub_ps(as_floats(codes, matrix.format.is_signed), less);
    _mm256_storeu_ps(to + (c - begin), _mm256_mul_ps(x, factor));
  }
  return c;
}

// Zero points of eight neighbours.
__m256 zeros_at(const PackedMatrix& matrix, std::int64_t at) {
  if (matrix.zeros == nullptr) return _mm256_set1_ps(static_cast<float>(matrix.packing.zero));
  if (matrix.zero_type == DType::float32)
    return _mm256_loadu_ps(static_cast<const float*>(matrix.zeros) + at);
  const auto* const bytes = static_cast<const std::uint8_t*>(matrix.zeros) + at;
  return as_floats(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)),
                   matrix.zero_type == DType::int8);
}

// A scale for each column; codes of 8 or 4 bits. Returns the first column that is left.
std::int64_t by_columns(const PackedMatrix& matrix, std::int64_t r, std::int64_t begin,
                        std::int64_t end, float* to) {
  const PackedFormat& format = matrix.format;
  const bool is_plain = !format.has_table && matrix.scale_type == DType::float32 &&
                        (matrix.zero_type == DType::float32 || size_of(matrix.zero_type) == 1);
  if (!is_plain || format.bits < 4) return begin;
  const std::uint8_t* const row = matrix.data + r * matrix.packing.row_bytes;
  const std::int64_t line = matrix.packing.scale_at(r, 0);
  const float* const scales = static_cast<const float*>(matrix.scales) + line;
  std::int64_t c = begin;
  const auto put = [&](__m256 codes, std::int64_t at) {
    const __m256 x = _mm256_sub_ps(codes, zeros_at(matrix, line + at));
    _mm256_storeu_ps(to + (at - begin), _mm256_mul_ps(x, _mm256_loadu_ps(scales + at)));
  };
  if (format.bits == 8) {
    for (; c + step <= end; c += step)
      put(as_floats(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + c)), format.is_signed),
          c);
    return c;
  }
  const __m256 bias = _mm256_set1_ps(format.is_signed ? 8.0f : 0.0f);
  for (; c + 32 <= end; c += 32) {
    __m128i codes[2];
    spread_nibbles(row + c / 2, format.is_signed, format.high_first, codes);
    for (int part = 0; part < 4; ++part) {
      const __m128i eight = part % 2 == 0 ? codes[part / 2] : _mm_srli_si128(codes[part / 2], 8);
      put(_mm256_sub_ps(as_floats(eight, false), bias), c + step * part);
    }
  }
  return c;
}

float sum_of(__m256 x) {
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_shuffle_ps(four, four, 1)));
}

// 32 numbers before scale and zero point, from column c on.
void load_numbers(const PackedMatrix& matrix, const Nibbles& nibbles, const std::uint8_t* row,
                  std::int64_t c, __m256 (&numbers)[4]) {
  if (matrix.format.bits == 8) {
    for (int part = 0; part < 4; ++part) {
      const auto* const eight = reinterpret_cast<const __m128i*>(row + c + step * part);
      numbers[part] = as_floats(_mm_loadl_epi64(eight), matrix.format.is_signed);
    }
    return;
  }
  __m128i codes[2];
  spread_nibbles(row + c / 2, matrix.format.is_signed, matrix.format.high_first, codes);
  for (int half = 0; half < 2; ++half) {
    numbers[2 * half] = nibbles.numbers(codes[half]);
    numbers[2 * half + 1] = nibbles.numbers(_mm_srli_si128(codes[half], 8));
  }
}

// The product of m rows of x with row r, which has no codes.
template <int m>
void multiply_numbers(const PackedMatrix& matrix, std::int64_t r, const float* x, float* y,
                      std::int64_t y_rows) {
  const std::int64_t columns = matrix.packing.columns;
  const void* const row = matrix.row(r);
  __m256 sums[m][2];
  for (auto& sum : sums) sum[0] = sum[1] = _mm256_setzero_ps();
  for (std::int64_t c = 0; c < columns; c += 2 * step) {
    for (int part = 0; part < 2; ++part) {
      const std::int64_t at = c + step * part;
      const __m256 numbers = load_eight(row, matrix.format.data, at);
      for (int i = 0; i < m; ++i)
        sums[i][part] =
            _mm256_fmadd_ps(numbers, _mm256_loadu_ps(x + i * columns + at), sums[i][part]);
    }
  }
  for (int i = 0; i < m; ++i) y[i * y_rows + r] = sum_of(_mm256_add_ps(sums[i][0], sums[i][1]));
}

template <int m>
void multiply_row(const PackedMatrix& matrix, std::int64_t r, const float* x, float* y,
                  std::int64_t y_rows) {
  if (!matrix.format.has_codes()) return multiply_numbers<m>(matrix, r, x, y, y_rows);
  const Packing& packing = matrix.packing;
  const std::uint8_t* const row = matrix.data + r * packing.row_bytes;
  const float* const table = packed_table(matrix.format.kind).data();
  const float bias = matrix.format.bits == 4 && matrix.format.is_signed ? 8.0f : 0.0f;
  __m256 sums[m];
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  for (std::int64_t c = 0; c < packing.columns; c += packing.column_block) {
    const std::int64_t end = std::min(c + packing.column_block, packing.columns);
    const std::int64_t at = packing.scale_at(r, c);
    const float zero = matrix.zeros != nullptr
                           ? packed_number<float>(matrix.zeros, matrix.zero_type, at)
                           : static_cast<float>(packing.zero);
    const __m256 less = _mm256_set1_ps(matrix.format.bits == 8 ? zero : 0.0f);
    const Nibbles nibbles{_mm256_loadu_ps(table),      _mm256_loadu_ps(table + 8),
                          _mm256_set1_ps(zero + bias), matrix.format.has_table,
                          matrix.format.is_signed,     matrix.format.high_first};
    __m256 block[m];
    for (__m256& sum : block) sum = _mm256_setzero_ps();
    for (std::int64_t first = c; first < end; first += 32) {
      __m256 numbers[4];
      load_numbers(matrix, nibbles, row, first, numbers);
      for (int part = 0; part < 4; ++part) {
        const __m256 number =
            matrix.format.bits == 8 ? _mm256_sub_ps(numbers[part], less) : numbers[part];
        for (int i = 0; i < m; ++i)
          block[i] = _mm256_fmadd_ps(
              number, _mm256_loadu_ps(x + i * packing.columns + first + step * part), block[i]);
      }
    }
    const __m256 scale = _mm256_set1_ps(packed_number<float>(matrix.scales, matrix.scale_type, at));
    for (int i = 0; i < m; ++i) sums[i] = _mm256_fmadd_ps(block[i], scale, sums[i]);
  }
  for (int i = 0; i < m; ++i) y[i * y_rows + r] = sum_of(sums[i]);
}

}  // namespace

bool has_row_products(const Packing& packing) {
  constexpr std::int64_t vector = 32;
  return packed_format(packing.kind).bits >= 4 && packing.columns % vector == 0 &&
         packing.column_block % vector == 0;
}

void multiply_rows_avx2(const PackedMatrix& matrix, std::int64_t begin, std::int64_t end,
                        const float* x, std::int64_t m, float* y, std::int64_t y_rows) {
  for (std::int64_t r = begin; r < end; ++r) {
    switch (m) {
      case 1:
        multiply_row<1>(matrix, r, x, y, y_rows);
        break;
      case 2:
        multiply_row<2>(matrix, r, x, y, y_rows);
        break;
      case 3:
        multiply_row<3>(matrix, r, x, y, y_rows);
        break;
      default:
        multiply_row<4>(matrix, r, x, y, y_rows);
    }
  }
}

void unpack_row_avx2(const PackedMatrix& matrix, std::int64_t r, std::int64_t begin,
                     std::int64_t end, float* to) {
  const Packing& packing = matrix.packing;
  const std::uint8_t* const row = matrix.data + r * packing.row_bytes;
  std::int64_t c = begin;
  if (!matrix.format.has_codes()) {
    c = widen_row(matrix, r, begin, end, to);
    for (; c < end; ++c) to[c - begin] = unpacked<float>(matrix, r, c);
    return;
  }
  if (packing.column_block == 1) c = by_columns(matrix, r, begin, end, to);
  while (c < end && packing.column_block >= step) {
    const std::int64_t stop = std::min(end, (c / packing.column_block + 1) * packing.column_block);
    const std::int64_t at = packing.scale_at(r, c);
    const float scale = packed_number<float>(matrix.scales, matrix.scale_type, at);
    const float zero = matrix.zeros != nullptr
                           ? packed_number<float>(matrix.zeros, matrix.zero_type, at)
                           : static_cast<float>(packing.zero);
    float* const block = to + (c - begin);
    std::int64_t done = c;
    if (matrix.format.bits == 4 && c % 2 == 0)
      done = nibble_block(matrix, row, c, stop, scale, zero, block);
    else if (matrix.format.bits == 8)
      done = byte_block(matrix, row, c, stop, scale, zero, block);
    for (; done < stop; ++done) to[done - begin] = unpacked<float>(matrix, r, done);
    c = stop;
  }
  for (; c < end; ++c) to[c - begin] = unpacked<float>(matrix, r, c);
}

}  // namespace tandem

#pragma GCC pop_options
