// Sums of the gradient rows of a group where rows are narrow. Included by vector_rows_*.cpp.

// Narrow rows: sums in double, no prefetch. A fixed number of columns, or 0 for g.columns.
constexpr std::int64_t narrow = 8;
template <class E, int fixed, bool weighted>
TANDEM_INLINE void narrow_sums(const RowGradients& g, const GradientRows<E>& rows,
                               std::int64_t first, std::int64_t last, float* sums) {
  const std::int64_t n = fixed > 0 ? fixed : g.columns;
  std::int64_t k = group_begin(g, first);
  for (std::int64_t i = first; i < last; ++i) {
    const std::int64_t end = group_begin(g, i + 1);
    double sum[narrow] = {};
    for (; k < end; ++k) {
      float weight = 1;
      const E* row = rows.row(k, weighted, weight);
      for (std::int64_t c = 0; c < n; ++c) {
        const auto x = static_cast<double>(number(row[c]));
        sum[c] += weighted ? x * static_cast<double>(weight) : x;
      }
    }
    for (std::int64_t c = 0; c < n; ++c) *sums++ = static_cast<float>(sum[c]);
  }
}
using Eight = float __attribute__((vector_size(32)));
using EightUnaligned = float __attribute__((vector_size(32), aligned(4), may_alias));
using EightInt = std::int32_t __attribute__((vector_size(32)));

TANDEM_INLINE Eight load8(const float* p) { return *reinterpret_cast<const EightUnaligned*>(p); }

/// sum + p[0] + ... + p[n - 1], n <= 8; reads all eight.
TANDEM_INLINE float sum_of_first(Eight sum, const float* p, std::int32_t n) {
  const EightInt lanes = {0, 1, 2, 3, 4, 5, 6, 7};
  const Eight x = load8(p);
  sum = sum + (lanes < n ? x : Eight{});
  sum = sum + __builtin_shuffle(sum, EightInt{4, 5, 6, 7, 0, 1, 2, 3});
  sum = sum + __builtin_shuffle(sum, EightInt{2, 3, 0, 1, 6, 7, 4, 5});
  sum = sum + __builtin_shuffle(sum, EightInt{1, 0, 3, 2, 5, 4, 7, 6});
  return sum[0];
}

/// to[j] = x[j] * factor rounded down, factor as in divided(). In float32 exact below 2^22: the
/// product's error stays below half of the factor.
TANDEM_INLINE void divide_all(const std::int32_t* x, std::int64_t n, double factor, bool in_float32,
                              std::int32_t* to) {
  using Indices = std::int32_t __attribute__((vector_size(4 * width), aligned(4), may_alias));
  std::int64_t j = 0;
  const V inverse = all(static_cast<float>(factor)), half = all(0.5f);
  if (in_float32) {
    for (; j + width <= n; j += width) {
      const Int from = *reinterpret_cast<const Indices*>(x + j);
      const V quotient = (__builtin_convertvector(from, V) + half) * inverse;
      *reinterpret_cast<Indices*>(to + j) = __builtin_convertvector(quotient, Int);
    }
  }
  for (; j < n; ++j) to[j] = static_cast<std::int32_t>(divided(x[j], factor));
}

// One column. Values are fetched many at a time and short groups summed without a branch on their
// length, which cannot be foretold.
template <class E>
void column_sums(const RowGradients& g, std::int64_t first, std::int64_t last, float* sums) {
  constexpr std::int64_t window = 1024;
  float values[window + 8] = {};
  const E* data = static_cast<const E*>(g.arrays[0].data);
  const std::int32_t* order = g.order;
  const double share = g.arrays[0].share;
  const bool in_float32 = g.arrays[0].rows <= std::int64_t{1} << 22;
  std::int32_t quotients[window];
  const std::int64_t all = group_begin(g, last);
  std::int64_t k = group_begin(g, first), base = k, filled = k;
  for (std::int64_t i = first; i < last; ++i) {
    const std::int64_t end = group_begin(g, i + 1);
    if (end - k <= 8 && end <= filled) {
      *sums++ = sum_of_first(Eight{}, values + (k - base), static_cast<std::int32_t>(end - k));
      k = end;
      continue;
    }
    double sum = 0;
    while (k < end) {
      if (k == filled) {
        base = k;
        filled = all - k < window ? all : k + window;
        const std::int64_t count = filled - base;
        if (share == 1) {
          for (std::int64_t j = 0; j < count; ++j) values[j] = number(data[order[base + j]]);
        } else {
          divide_all(order + base, count, share, in_float32, quotients);
          for (std::int64_t j = 0; j < count; ++j) values[j] = number(data[quotients[j]]);
        }
      }
      const std::int64_t stop = end < filled ? end : filled;
      Eight several = {};
      for (; k + 8 <= stop; k += 8) several = several + load8(values + (k - base));
      sum += static_cast<double>(
          sum_of_first(several, values + (k - base), static_cast<std::int32_t>(stop - k)));
      k = stop;
    }
    *sums++ = static_cast<float>(sum);
  }
}

template <class E>
void narrow_sums(const RowGradients& g, const GradientRows<E>& rows, std::int64_t first,
                 std::int64_t last, float* sums) {
  if (rows.weighted)
    narrow_sums<E, 0, true>(g, rows, first, last, sums);
  else if (g.columns > 1)
    narrow_sums<E, 0, false>(g, rows, first, last, sums);
  else if (g.count == 1 && g.arrays[0].stride == 1 && g.order != nullptr)
    column_sums<E>(g, first, last, sums);
  else
    narrow_sums<E, 1, false>(g, rows, first, last, sums);
}
