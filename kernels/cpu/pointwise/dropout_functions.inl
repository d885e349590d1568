// Dropout and the small transposition. Included by vector_functions_*.cpp.

// The words of 4 * blocks elements from element 4 * first_block on. Loops over the blocks are
// innermost, so that they become vector code.
constexpr int philox_blocks = 64;
void philox_words(std::uint64_t stream, std::uint64_t first_block, std::uint32_t* words) {
  std::uint32_t c0[philox_blocks], c1[philox_blocks], c2[philox_blocks], c3[philox_blocks];
  for (int i = 0; i < philox_blocks; ++i) {
    const std::uint64_t block = first_block + static_cast<std::uint64_t>(i);
    c0[i] = static_cast<std::uint32_t>(block);
    c1[i] = static_cast<std::uint32_t>(block >> 32);
    c2[i] = c3[i] = 0;
  }
  std::uint32_t key0 = static_cast<std::uint32_t>(stream),
                key1 = static_cast<std::uint32_t>(stream >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < philox_blocks; ++i) {
      const std::uint64_t a = std::uint64_t{0xD2511F53u} * c0[i];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * c2[i];
      c0[i] = static_cast<std::uint32_t>(b >> 32) ^ c1[i] ^ key0;
      c1[i] = static_cast<std::uint32_t>(b);
      c2[i] = static_cast<std::uint32_t>(a >> 32) ^ c3[i] ^ key1;
      c3[i] = static_cast<std::uint32_t>(a);
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  for (int i = 0; i < philox_blocks; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

void row_dropout(const float* x, float* y, unsigned char* mask, std::int64_t first, std::int64_t n,
                 std::uint64_t stream, std::uint32_t threshold, float factor) {
  std::uint32_t words[4 * philox_blocks];
  std::int64_t i = 0;
  while (i < n) {
    const std::int64_t element = first + i;
    philox_words(stream, static_cast<std::uint64_t>(element / 4), words);
    const std::int64_t skip = element % 4;
    const std::int64_t left = 4 * philox_blocks - skip;
    const std::int64_t m = n - i < left ? n - i : left;
    for (std::int64_t k = 0; k < m; ++k) {
      const bool keep = words[skip + k] >= threshold;
      mask[i + k] = keep;
      y[i + k] = x[i + k] * (keep ? factor : 0.0f);
    }
    i += m;
  }
}

void row_dropout_grad(const float* dy, const unsigned char* mask, float* dx, std::int64_t n,
                      float factor) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] = dy[i] * (mask[i] ? factor : 0.0f);
}

void transpose4(const float* x, std::int64_t x_stride, float* y, std::int64_t y_stride,
                std::int64_t rows, std::int64_t columns) {
  std::int64_t c = 0;
#if TANDEM_VECTOR_WIDTH >= 8
  using Eight = float __attribute__((vector_size(32)));
  using EightUnaligned = float __attribute__((vector_size(32), aligned(4), may_alias));
  for (; c + 8 <= columns; c += 8) {
    std::int64_t r = 0;
    for (; r + 8 <= rows; r += 8) {
      Eight in[8], half[8];
      for (int i = 0; i < 8; ++i) {
        in[i] = *reinterpret_cast<const EightUnaligned*>(x + (r + i) * x_stride + c);
      }
      for (int i = 0; i < 8; i += 2) {
        half[i] = __builtin_shuffle(
            in[i], in[i + 1], (int __attribute__((vector_size(32)))){0, 8, 1, 9, 4, 12, 5, 13});
        half[i + 1] = __builtin_shuffle(
            in[i], in[i + 1], (int __attribute__((vector_size(32)))){2, 10, 3, 11, 6, 14, 7, 15});
      }
      for (int i = 0; i < 8; i += 4) {
        for (int k = 0; k < 2; ++k) {
          in[i + 2 * k] =
              __builtin_shuffle(half[i + k], half[i + k + 2],
                                (int __attribute__((vector_size(32)))){0, 1, 8, 9, 4, 5, 12, 13});
          in[i + 2 * k + 1] =
              __builtin_shuffle(half[i + k], half[i + k + 2],
                                (int __attribute__((vector_size(32)))){2, 3, 10, 11, 6, 7, 14, 15});
        }
      }
      for (int i = 0; i < 4; ++i) {
        const Eight low = __builtin_shuffle(
            in[i], in[i + 4], (int __attribute__((vector_size(32)))){0, 1, 2, 3, 8, 9, 10, 11});
        const Eight high = __builtin_shuffle(
            in[i], in[i + 4], (int __attribute__((vector_size(32)))){4, 5, 6, 7, 12, 13, 14, 15});
        *reinterpret_cast<EightUnaligned*>(y + (c + i) * y_stride + r) = low;
        *reinterpret_cast<EightUnaligned*>(y + (c + i + 4) * y_stride + r) = high;
      }
    }
    for (; r < rows; ++r) {
      for (std::int64_t k = c; k < c + 8; ++k) y[k * y_stride + r] = x[r * x_stride + k];
    }
  }
#endif
  for (; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) y[c * y_stride + r] = x[r * x_stride + c];
  }
}
