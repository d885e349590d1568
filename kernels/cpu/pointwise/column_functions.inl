// Softmax and its gradient down columns: rows `stride` apart, n columns side by side, of which each
// lane has one. Included by vector_functions_*.cpp.

constexpr std::int64_t rows_per_block = 64;

struct WholeVector {
  TANDEM_INLINE V get(const float* p) const { return load(p); }
  TANDEM_INLINE void put(float* p, V x) const { store(p, x); }
};
struct PartOfVector {
  std::int64_t count;
  TANDEM_INLINE V get(const float* p) const { return load_rest(p, count); }
  TANDEM_INLINE void put(float* p, V x) const { store_rest(p, x, count); }
};

// f(column, WholeVector or PartOfVector) for each vector of n columns.
template <class F>
TANDEM_INLINE void each_vector(std::int64_t n, F f) {
  std::int64_t i = 0;
  for (; i + width <= n; i += width) f(i, WholeVector{});
  if (i < n) f(i, PartOfVector{n - i});
}

// A sum whose terms are sums of blocks of rows: what one addition rounds away, the next one adds;
// after an infinity there is nothing to add.
struct SumOfBlocks {
  V total{}, lost{};
  TANDEM_INLINE void add(V block) {
    const V term = block - lost, next = total + term;
    const V rest = (next - total) - term;
    lost = rest == rest ? rest : V{};
    total = next;
  }
};

// Sum over the rows of term(row, k), for `vectors` vectors k.
template <int vectors, class Term>
TANDEM_INLINE void column_sums(std::int64_t rows, V (&sums)[vectors], Term term) {
  SumOfBlocks totals[vectors];
  for (std::int64_t begin = 0; begin < rows; begin += rows_per_block) {
    const std::int64_t end = begin + rows_per_block < rows ? begin + rows_per_block : rows;
    V block[vectors];
#pragma GCC unroll 4
    for (int k = 0; k < vectors; ++k) block[k] = V{};
    for (std::int64_t r = begin; r < end; ++r) {
#pragma GCC unroll 4
      for (int k = 0; k < vectors; ++k) block[k] += term(r, k);
    }
#pragma GCC unroll 4
    for (int k = 0; k < vectors; ++k) totals[k].add(block[k]);
  }
#pragma GCC unroll 4
  for (int k = 0; k < vectors; ++k) sums[k] = totals[k].total;
}

template <int vectors, class Access>
TANDEM_INLINE void log_sum_exp_of(const float* x, std::int64_t rows, std::int64_t stride,
                                  float* lse, Access access) {
  V largest[vectors], sums[vectors];
#pragma GCC unroll 4
  for (int k = 0; k < vectors; ++k) largest[k] = access.get(x + k * width);
  for (std::int64_t r = 1; r < rows; ++r) {
#pragma GCC unroll 4
    for (int k = 0; k < vectors; ++k) {
      largest[k] = raise(largest[k], access.get(x + r * stride + k * width));
    }
  }
  column_sums(rows, sums, [&](std::int64_t r, int k) TANDEM_LAMBDA {
    return exp_of(access.get(x + r * stride + k * width) - largest[k]);
  });
  const float infinity = __builtin_inff();
#pragma GCC unroll 4
  for (int k = 0; k < vectors; ++k) {
    access.put(lse + k * width, largest[k] == -infinity ? largest[k] : largest[k] + log_of(sums[k]));
  }
}

void columns_log_sum_exp(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t n,
                         float* lse) {
  constexpr int group = 2;
  std::int64_t i = 0;
  for (; i + group * width <= n; i += group * width) {
    log_sum_exp_of<group>(x + i, rows, stride, lse + i, WholeVector{});
  }
  each_vector(n - i, [=](std::int64_t at, auto access) TANDEM_LAMBDA {
    log_sum_exp_of<1>(x + i + at, rows, stride, lse + i + at, access);
  });
}

void columns_mean(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t n,
                  float* mean) {
  const float count = static_cast<float>(rows);
  each_vector(n, [=](std::int64_t i, auto access) TANDEM_LAMBDA {
    V sums[1];
    column_sums(rows, sums,
                [=](std::int64_t r, int) TANDEM_LAMBDA { return access.get(x + r * stride + i); });
    access.put(mean + i, sums[0] / count);
  });
}

void columns_softmax_less(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t n,
                          const float* lse, const float* weights, const float* factors,
                          float spread, float* y) {
  for (std::int64_t r = 0; r < rows; ++r, x += stride, y += stride) {
    each_vector(n, [=](std::int64_t i, auto access) TANDEM_LAMBDA {
      const V factor = access.get(factors + i);
      const V result = exp_of(access.get(x + i) - access.get(lse + i)) * factor - factor * spread;
      const Int counts = weights == nullptr ? all_int(-1) : access.get(weights + i) != 0.0f;
      access.put(y + i, counts ? result : V{});
    });
  }
}
