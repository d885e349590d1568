// Optimizer updates of single rows, and of ranges of groups. Included by vector_rows_*.cpp.

TANDEM_INLINE float sqrt_of(float x) { return __builtin_sqrtf(x); }

// For an lr_power other than -1/2: rare, so exact rather than fast.
__attribute__((noinline)) V power_of(V x, float power) {
  float lanes[width];
  store(lanes, x);
  for (float& lane : lanes) {
    lane = static_cast<float>(__builtin_pow(static_cast<double>(lane), static_cast<double>(power)));
  }
  return load(lanes);
}

#define TANDEM_FORMULA TANDEM_INLINE
#include "kernels/shared/row_formulas.inl"
#undef TANDEM_FORMULA

/// w, a, b = f(w, g, a, b) of n elements; `states` of a and b exist. Row: WholeRow or SplitRow.
template <int states, class Row, class F>
TANDEM_INLINE void update_elements(Row w, float* a, float* b, const float* g, std::int64_t n, F f) {
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    V x = states > 0 ? load(a + i) : V{}, y = states > 1 ? load(b + i) : V{};
    w.set(i, f(w.at(i), load(g + i), x, y));
    if (states > 0) store(a + i, x);
    if (states > 1) store(b + i, y);
  }
  if (i < n) {
    const std::int64_t rest = n - i;
    V x = states > 0 ? load_rest(a + i, rest) : V{}, y = states > 1 ? load_rest(b + i, rest) : V{};
    w.set_rest(i, f(w.rest(i, rest), load_rest(g + i, rest), x, y), rest);
    if (states > 0) store_rest(a + i, x, rest);
    if (states > 1) store_rest(b + i, y, rest);
  }
}

/// The sum of f(w, g, a, b) over n elements, where f may replace a and b. Lanes past the end hold
/// zeros, of which f must make 0.
template <int states, class Row, class F>
TANDEM_INLINE float sum_elements(Row w, float* a, float* b, const float* g, std::int64_t n, F f) {
  V sum = {};
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    V x = states > 0 ? load(a + i) : V{}, y = states > 1 ? load(b + i) : V{};
    sum = sum + f(w.at(i), load(g + i), x, y);
    if (states > 0) store(a + i, x);
    if (states > 1) store(b + i, y);
  }
  if (i < n) {
    const std::int64_t rest = n - i;
    V x = states > 0 ? load_rest(a + i, rest) : V{}, y = states > 1 ? load_rest(b + i, rest) : V{};
    sum = sum + f(w.rest(i, rest), load_rest(g + i, rest), x, y);
    if (states > 0) store_rest(a + i, x, rest);
    if (states > 1) store_rest(b + i, y, rest);
  }
  return sum_lanes(sum);
}

template <class Row>
void update_rowwise(const AdagradStep<float>& s, Row w, float* state, const float* g,
                    std::int64_t n) {
  const float squares =
      sum_elements<0>(w, nullptr, nullptr, g, n, [s](V x, V d, V&, V&) TANDEM_LAMBDA {
        const V y = rowwise_gradient(s, x, d);
        return y * y;
      });
  const float factor = rowwise_factor(s, squares, static_cast<float>(n), *state);
  update_elements<0>(w, nullptr, nullptr, g, n, [s, factor](V x, V d, V&, V&) TANDEM_LAMBDA {
    return x - factor * rowwise_gradient(s, x, d);
  });
}

template <class Row>
void update_group_ftrl(const FtrlStep<float>& s, Row w, float* accumulated, float* linear,
                       const float* g, std::int64_t n) {
  const float squares =
      sum_elements<2>(w, accumulated, linear, g, n, [s](V x, V d, V& sum, V& z) TANDEM_LAMBDA {
        ftrl_states(s, x, d, sum, z);
        const V kept = ftrl_threshold(s, z);
        return kept * kept;
      });
  const float factor = group_factor(s.l21, squares, static_cast<float>(n));
  update_elements<2>(w, accumulated, linear, g, n, [s, factor](V, V, V& sum, V& z) TANDEM_LAMBDA {
    return ftrl_quotient(s, ftrl_threshold(s, z) * factor, ftrl_power(s, sum));
  });
}

template <class Row>
void update_ftrl(FtrlStep<float> s, Row w, float* accumulated, float* linear, const float* g,
                 std::int64_t n) {
  const auto ftrl = [&s](V x, V d, V& sum, V& z)
                        TANDEM_LAMBDA { return row_ftrl(s, x, d, sum, z); };
  if (s.root) {
    s.root = true;  // known to the compiler here, which then keeps no call in the loop
    update_elements<2>(w, accumulated, linear, g, n, ftrl);
  } else {
    s.root = false;
    update_elements<2>(w, accumulated, linear, g, n, ftrl);
  }
}

/// One row; of kinds that are `elementwise`, any number of elements.
template <class Row>
void update_any(const RowStep& step, Row w, float* a, float* b, const float* g, std::int64_t n) {
  switch (step.kind) {
    case RowOptimizer::sgd:
      update_elements<0>(w, a, b, g, n, [s = step.sgd](V x, V d, V&, V&) TANDEM_LAMBDA {
        return row_sgd(s, x, d);
      });
      break;
    case RowOptimizer::adam:
      update_elements<2>(w, a, b, g, n, [s = step.adam](V x, V d, V& m, V& v) TANDEM_LAMBDA {
        return row_adam(s, x, d, m, v);
      });
      break;
    case RowOptimizer::adagrad:
      update_elements<1>(w, a, b, g, n, [s = step.adagrad](V x, V d, V& sum, V&) TANDEM_LAMBDA {
        return row_adagrad(s, x, d, sum);
      });
      break;
    case RowOptimizer::rowwise_adagrad:
      update_rowwise(step.adagrad, w, a, g, n);
      break;
    case RowOptimizer::ftrl:
      update_ftrl(step.ftrl, w, a, b, g, n);
      break;
    case RowOptimizer::group_ftrl:
      update_group_ftrl(step.ftrl, w, a, b, g, n);
      break;
  }
}

void dense_elements(const RowStep& step, float* weights, float* const* states,
                    const float* gradients, std::int64_t n) {
  const int count = layout_of(step.kind).states;
  update_any(step, WholeRow{weights}, count > 0 ? states[0] : nullptr,
             count > 1 ? states[1] : nullptr, gradients, n);
}

template <class Row>
TANDEM_INLINE Row row_at(const RowTable& table, std::int64_t start);
template <>
TANDEM_INLINE WholeRow row_at(const RowTable& table, std::int64_t start) {
  return {table.weights + start};
}
template <>
TANDEM_INLINE SplitRow row_at(const RowTable& table, std::int64_t start) {
  return {table.tops + start, table.tails + start};
}
TANDEM_INLINE void prefetch(WholeRow row, std::int64_t n) { prefetch_row(row.w, n * 4); }
TANDEM_INLINE void prefetch(SplitRow row, std::int64_t n) {
  prefetch_row(row.top, n * 2);
  prefetch_row(row.tail, n * 2);
}

TANDEM_INLINE std::int64_t table_row(const RowTable& table, std::int64_t group) {
  return table.wide_rows ? static_cast<const std::int64_t*>(table.rows)[group]
                         : static_cast<const std::int32_t*>(table.rows)[group];
}

// Narrow rows of element-wise kinds, many at a time: packed, updated and put back.
constexpr std::int64_t packed_rows = 256;
template <class E, int fixed, bool split>
TANDEM_INLINE void update_narrow(const RowStep& step, const RowTable& table, const RowGradients& g,
                                 std::int64_t first, std::int64_t last) {
  const std::int64_t n = fixed > 0 ? fixed : g.columns;
  constexpr std::int64_t most = packed_rows * (fixed > 0 ? fixed : narrow);
  const GradientRows<E> rows(g);
  float sums[most], w[most], a[most], b[most];
  std::int64_t starts[packed_rows];
  const int states = layout_of(step.kind).states;
  float *const table_w = table.weights, *const table_a = states > 0 ? table.states[0] : nullptr,
               *const table_b = states > 1 ? table.states[1] : nullptr;
  for (std::int64_t i = first; i < last; i += packed_rows) {
    const std::int64_t count = last - i < packed_rows ? last - i : packed_rows;
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t start = starts[r] = table_row(table, i + r) * n;
      for (std::int64_t c = 0; c < n; ++c) {
        w[r * n + c] =
            split ? join_one(table.tops[start + c], table.tails[start + c]) : table_w[start + c];
        if (table_a != nullptr) a[r * n + c] = table_a[start + c];
        if (table_b != nullptr) b[r * n + c] = table_b[start + c];
      }
    }
    narrow_sums(g, rows, i, i + count, sums);
    update_any(step, WholeRow{w}, a, b, sums, count * n);
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t start = starts[r];
      for (std::int64_t c = 0; c < n; ++c) {
        if (split)
          split_one(w[r * n + c], table.tops + start + c, table.tails + start + c);
        else
          table_w[start + c] = w[r * n + c];
        if (table_a != nullptr) table_a[start + c] = a[r * n + c];
        if (table_b != nullptr) table_b[start + c] = b[r * n + c];
      }
    }
  }
}

template <class E, class Row>
void update_groups_of(const RowStep& step, const RowTable& table, const RowGradients& g,
                      std::int64_t first, std::int64_t last, float* buffers) {
  const RowLayout layout = layout_of(step.kind);
  if (g.columns <= narrow && layout.elementwise()) {
    if (g.columns == 1)
      update_narrow<E, 1, Row::split>(step, table, g, first, last);
    else
      update_narrow<E, 0, Row::split>(step, table, g, first, last);
    return;
  }
  float* const a = layout.states > 0 ? table.states[0] : nullptr;
  float* const b = layout.states > 1 ? table.states[1] : nullptr;
  // States by row lie so close together that many are in the caches anyway.
  const bool fetch_a = a != nullptr && !layout.by_row[0];
  const bool fetch_b = b != nullptr && !layout.by_row[1];
  constexpr std::int64_t ahead = 3;
  for_groups<E>(g, first, last, buffers,
                [&](std::int64_t i, const float* sum, std::int64_t n) TANDEM_LAMBDA {
                  if (i + ahead < last) {
                    const std::int64_t start = table_row(table, i + ahead) * n;
                    prefetch(row_at<Row>(table, start), n);
                    if (fetch_a) prefetch_row(a + start, n * 4);
                    if (fetch_b) prefetch_row(b + start, n * 4);
                  }
                  const std::int64_t row = table_row(table, i);
                  update_any(step, row_at<Row>(table, row * n),
                             a == nullptr ? a : a + row * layout.state_columns(0, n),
                             b == nullptr ? b : b + row * layout.state_columns(1, n), sum, n);
                });
}

template <class E>
void update_groups(const RowStep& step, const RowTable& table, const RowGradients& g,
                   std::int64_t first, std::int64_t last, float* buffers) {
  if (table.tops != nullptr)
    update_groups_of<E, SplitRow>(step, table, g, first, last, buffers);
  else
    update_groups_of<E, WholeRow>(step, table, g, first, last, buffers);
}

void update_range(const RowStep& step, const RowTable& table, const RowGradients& g,
                  std::int64_t first, std::int64_t last, float* buffers) {
  if (g.bfloat16)
    update_groups<Half>(step, table, g, first, last, buffers);
  else
    update_groups<float>(step, table, g, first, last, buffers);
}
