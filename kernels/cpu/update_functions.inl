// SGD with momentum, LAMB, dropout and the small transposition. Included by vector_functions_*.cpp.

TANDEM_INLINE V sgd_vector(const SgdStep<float>& s, V w, V d, V& b) {
  const V g = d * s.scale + w * s.weight_decay;
  b = b * s.decay + g * s.keep;
  return w - s.lr * (s.nesterov ? g + b * s.momentum : b);
}

void update_sgd_momentum(const SgdStep<float>& step, const float* master, const float* grad,
                         const float* buffer, float* new_master, float* new_buffer,
                         std::int64_t n) {
  const SgdStep<float> s = step;
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    V b = load(buffer + i);
    store(new_master + i, sgd_vector(s, load(master + i), load(grad + i), b));
    store(new_buffer + i, b);
  }
  if (i < n) {
    const std::int64_t rest = n - i;
    V b = load_part(buffer + i, rest);
    store_part(new_master + i,
               sgd_vector(s, load_part(master + i, rest), load_part(grad + i, rest), b), rest);
    store_part(new_buffer + i, b, rest);
  }
}

// A vector's elements as doubles, in two halves.
using Half = float __attribute__((vector_size(2 * TANDEM_VECTOR_WIDTH)));
using HalfDoubles = double __attribute__((vector_size(4 * TANDEM_VECTOR_WIDTH)));
TANDEM_INLINE void add_squares(V x, HalfDoubles& low, HalfDoubles& high) {
  Half halves[2];
  __builtin_memcpy(halves, &x, sizeof(x));
  const HalfDoubles a = __builtin_convertvector(halves[0], HalfDoubles),
                    b = __builtin_convertvector(halves[1], HalfDoubles);
  low += a * a;
  high += b * b;
}
TANDEM_INLINE double sum_doubles(HalfDoubles x) {
  double sum = 0;
  for (int i = 0; i < width / 2; ++i) sum += x[i];
  return sum;
}

TANDEM_INLINE V lamb_vector(const LambStep<float>& a, V w, V m, V v) {
  return (m * a.factor) / (sqrt_of(v) * a.root_factor + a.epsilon) + w * a.weight_decay;
}

TANDEM_INLINE V lamb_moments_vector(const LambStep<float>& a, V w, V d, V& m, V& v) {
  const V g = d * a.scale;
  m = m * a.beta1 + g * a.rest1;
  v = v * a.beta2 + g * a.rest2 * g;
  return lamb_vector(a, w, m, v);
}

void update_lamb_moments(const LambStep<float>& step, const float* master, const float* grad,
                         const float* exp_avg, const float* exp_avg_sq, float* new_exp_avg,
                         float* new_exp_avg_sq, std::int64_t n, double* squares) {
  const LambStep<float> a = step;
  HalfDoubles w0{}, w1{}, u0{}, u1{};
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    V m = load(exp_avg + i), v = load(exp_avg_sq + i);
    const V w = load(master + i);
    const V u = lamb_moments_vector(a, w, load(grad + i), m, v);
    store(new_exp_avg + i, m);
    store(new_exp_avg_sq + i, v);
    add_squares(w, w0, w1);
    add_squares(u, u0, u1);
  }
  if (i < n) {
    const std::int64_t rest = n - i;
    V m = load_part(exp_avg + i, rest), v = load_part(exp_avg_sq + i, rest);
    const V w = load_part(master + i, rest);
    float direction[width];  // where epsilon is 0, that of lanes beyond the end is no number
    store_part(direction, lamb_moments_vector(a, w, load_part(grad + i, rest), m, v), rest);
    store_part(new_exp_avg + i, m, rest);
    store_part(new_exp_avg_sq + i, v, rest);
    add_squares(w, w0, w1);
    add_squares(load_part(direction, rest), u0, u1);
  }
  squares[0] += sum_doubles(w0 + w1);
  squares[1] += sum_doubles(u0 + u1);
}

void update_lamb_apply(const LambStep<float>& step, float rate, const float* master,
                       const float* exp_avg, const float* exp_avg_sq, float* new_master,
                       std::int64_t n) {
  const LambStep<float> a = step;
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    const V w = load(master + i);
    store(new_master + i, w - lamb_vector(a, w, load(exp_avg + i), load(exp_avg_sq + i)) * rate);
  }
  if (i < n) {
    const std::int64_t rest = n - i;
    const V w = load_part(master + i, rest);
    const V u = lamb_vector(a, w, load_part(exp_avg + i, rest), load_part(exp_avg_sq + i, rest));
    store_part(new_master + i, w - u * rate, rest);
  }
}

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
