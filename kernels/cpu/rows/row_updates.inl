// Optimizer updates of ranges of groups. Included by vector_rows_*.cpp.

TANDEM_INLINE void update_row(const RowStep& step, const RuleLoops& loops, const RowTable& table,
                              std::int64_t start, float* const* states, const float* g,
                              std::int64_t n) {
  if (table.tops != nullptr)
    loops.split(step.factors, table.tops + start, table.tails + start, states, g, n);
  else
    loops.whole(step.factors, table.weights + start, states, g, n);
}
TANDEM_INLINE void prefetch_weights(const RowTable& table, std::int64_t start, std::int64_t n) {
  if (table.tops != nullptr) {
    prefetch_row(table.tops + start, n * 2);
    prefetch_row(table.tails + start, n * 2);
  } else {
    prefetch_row(table.weights + start, n * 4);
  }
}

TANDEM_INLINE std::int64_t table_row(const RowTable& table, std::int64_t group) {
  return table.wide_rows ? static_cast<const std::int64_t*>(table.rows)[group]
                         : static_cast<const std::int32_t*>(table.rows)[group];
}

// Narrow rows of element-wise kinds, many at a time: packed, updated and put back.
constexpr std::int64_t packed_rows = 256;
template <class E, int fixed, bool split>
TANDEM_INLINE void update_narrow(const RowStep& step, const RuleLoops& loops, const RowTable& table,
                                 const RowGradients& g, std::int64_t first, std::int64_t last) {
  const std::int64_t n = fixed > 0 ? fixed : g.columns;
  constexpr std::int64_t most = packed_rows * (fixed > 0 ? fixed : narrow);
  const GradientRows<E> rows(g);
  // The states that are there, first to last; two move with the weights, the others by themselves.
  constexpr int beside = 2, room = most_states < beside ? beside : most_states;
  float sums[most], w[most], packed[room][most];
  float *from[room] = {}, *own[most_states] = {};
  int found = 0;
  for (int k = 0; k < most_states; ++k) {
    if (!step.layout.has(k)) continue;
    from[found] = table.states[k];
    own[k] = packed[found++];
  }
  float *const table_w = table.weights, *const table_a = from[0], *const table_b = from[1];
  float *const a = packed[0], *const b = packed[1];
  std::int64_t starts[packed_rows];
  for (std::int64_t i = first; i < last; i += packed_rows) {
    const std::int64_t count = last - i < packed_rows ? last - i : packed_rows;
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t start = starts[r] = table_row(table, i + r) * n;
      for (std::int64_t k = 0; k < n; ++k) {
        w[r * n + k] =
            split ? join_one(table.tops[start + k], table.tails[start + k]) : table_w[start + k];
        if (table_a != nullptr) a[r * n + k] = table_a[start + k];
        if (table_b != nullptr) b[r * n + k] = table_b[start + k];
      }
    }
    for (int s = beside; s < found; ++s) {
      for (std::int64_t r = 0; r < count; ++r) {
        for (std::int64_t k = 0; k < n; ++k) packed[s][r * n + k] = from[s][starts[r] + k];
      }
    }
    narrow_sums(g, rows, i, i + count, sums);
    loops.whole(step.factors, w, own, sums, count * n);
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t start = starts[r];
      for (std::int64_t k = 0; k < n; ++k) {
        if (split)
          split_one(w[r * n + k], table.tops + start + k, table.tails + start + k);
        else
          table_w[start + k] = w[r * n + k];
        if (table_a != nullptr) table_a[start + k] = a[r * n + k];
        if (table_b != nullptr) table_b[start + k] = b[r * n + k];
      }
    }
    for (int s = beside; s < found; ++s) {
      for (std::int64_t r = 0; r < count; ++r) {
        for (std::int64_t k = 0; k < n; ++k) from[s][starts[r] + k] = packed[s][r * n + k];
      }
    }
  }
}

template <class E>
void update_all_narrow(const RowStep& step, const RuleLoops& loops, const RowTable& table,
                       const RowGradients& g, std::int64_t first, std::int64_t last) {
  const bool split = table.tops != nullptr;
  if (g.columns == 1)
    split ? update_narrow<E, 1, true>(step, loops, table, g, first, last)
          : update_narrow<E, 1, false>(step, loops, table, g, first, last);
  else
    split ? update_narrow<E, 0, true>(step, loops, table, g, first, last)
          : update_narrow<E, 0, false>(step, loops, table, g, first, last);
}

void update_range(const RowStep& step, const RuleLoops& loops, const RowTable& table,
                  const RowGradients& g, std::int64_t first, std::int64_t last, float* buffers) {
  const RowLayout& layout = step.layout;
  if (g.columns <= narrow && layout.elementwise()) {
    g.bfloat16 ? update_all_narrow<Half>(step, loops, table, g, first, last)
               : update_all_narrow<float>(step, loops, table, g, first, last);
    return;
  }
  constexpr std::int64_t ahead = 3;
  use_groups(g, first, last, buffers, [&](std::int64_t i, const float* sum, std::int64_t n) {
    if (i + ahead < last) {
      const std::int64_t start = table_row(table, i + ahead) * n;
      prefetch_weights(table, start, n);
      // States by row lie so close together that many are in the caches anyway.
      for (int k = 0; k < most_states; ++k) {
        if (layout.has(k) && !layout.is_by_row(k)) prefetch_row(table.states[k] + start, n * 4);
      }
    }
    const std::int64_t row = table_row(table, i);
    float* states[most_states];
    for (int k = 0; k < most_states; ++k)
      states[k] = layout.has(k) ? table.states[k] + row * layout.state_columns(k, n) : nullptr;
    update_row(step, loops, table, row * n, states, sum, n);
  });
}
