// Look-ups, and sums of looked-up rows. Included by vector_rows_*.cpp.

template <class Id>
struct LookupRows {
  const Id* ids;
  std::int64_t table_rows;

  TANDEM_INLINE std::int64_t row(std::int64_t i) const {
    const auto raw = static_cast<std::int64_t>(ids[i]);
    const std::int64_t id = raw + (raw < 0 ? table_rows : 0);
    return id < 0 ? 0 : id < table_rows ? id : table_rows - 1;
  }
};

using Quarter = float __attribute__((vector_size(16)));
using QuarterUnaligned = float __attribute__((vector_size(16), aligned(4), may_alias));

// How a row is stored: usual stores, or past the caches in vectors of `width` or of 4.
enum class Store { usual, stream, stream4 };

template <Store how>
TANDEM_INLINE void copy_row(const float* x, float* y, std::int64_t n) {
  std::int64_t i = 0;
  if (how == Store::stream4) {
    for (; i < n; i += 4) {
      const Quarter part = *reinterpret_cast<const QuarterUnaligned*>(x + i);
      _mm_stream_ps(y + i, part);
    }
    return;
  }
  for (; i + width <= n; i += width) {
    if (how == Store::stream)
      stream(y + i, load(x + i));
    else
      store(y + i, load(x + i));
  }
  if (i < n) store_rest(y + i, load_rest(x + i, n - i), n - i);
}

template <Store how, class Id>
void gather_rows_of(const RowLookup& lookup, std::int64_t begin, std::int64_t end) {
  const LookupRows<Id> rows{static_cast<const Id*>(lookup.ids.data), lookup.table_rows};
  const std::int64_t n = lookup.columns;
  constexpr std::int64_t ahead = 16;
  for (std::int64_t i = begin; i < begin + ahead && i < end; ++i)
    prefetch_row(lookup.table + rows.row(i) * n, n * 4);
  for (std::int64_t i = begin; i < end; ++i) {
    if (i + ahead < end) prefetch_row(lookup.table + rows.row(i + ahead) * n, n * 4);
    copy_row<how>(lookup.table + rows.row(i) * n, lookup.y + i * lookup.stride, n);
  }
}

template <class Id>
void gather_any(const RowLookup& lookup, std::int64_t begin, std::int64_t end, bool past_cache) {
  const std::int64_t n = lookup.columns, stride = lookup.stride;
  if (n <= narrow) {
    const LookupRows<Id> rows{static_cast<const Id*>(lookup.ids.data), lookup.table_rows};
    if (n == 1 && stride == 1) {
      for (std::int64_t i = begin; i < end; ++i) lookup.y[i] = lookup.table[rows.row(i)];
      return;
    }
    for (std::int64_t i = begin; i < end; ++i) {
      const float* x = lookup.table + rows.row(i) * n;
      for (std::int64_t c = 0; c < n; ++c) lookup.y[i * stride + c] = x[c];
    }
    return;
  }
  const auto lies_at = [&](std::int64_t floats) TANDEM_LAMBDA {
    return n % floats == 0 && stride % floats == 0 &&
           reinterpret_cast<std::uintptr_t>(lookup.y) % static_cast<std::uintptr_t>(4 * floats) ==
               0;
  };
  if (past_cache && lies_at(width)) {
    gather_rows_of<Store::stream, Id>(lookup, begin, end);
    _mm_sfence();
  } else if (past_cache && lies_at(4)) {
    gather_rows_of<Store::stream4, Id>(lookup, begin, end);
    _mm_sfence();
  } else {
    gather_rows_of<Store::usual, Id>(lookup, begin, end);
  }
}

void gather_range(const RowLookup& lookup, std::int64_t begin, std::int64_t end, bool past_cache) {
  if (lookup.ids.wide)
    gather_any<std::int64_t>(lookup, begin, end, past_cache);
  else
    gather_any<std::int32_t>(lookup, begin, end, past_cache);
}

/// sum += weight x
TANDEM_INLINE void add_scaled(float* sum, const float* x, float weight, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + width <= n; i += width) store(sum + i, load(sum + i) + weight * load(x + i));
  if (i < n) {
    const std::int64_t rest = n - i;
    store_rest(sum + i, load_rest(sum + i, rest) + weight * load_rest(x + i, rest), rest);
  }
}

// Narrow rows: sums in double. A fixed number of columns, or 0 for `columns`.
template <class Id, int fixed>
void narrow_bags(const RowBags& bags, std::int64_t begin, std::int64_t end) {
  const RowLookup& lookup = bags.rows;
  const LookupRows<Id> rows{static_cast<const Id*>(lookup.ids.data), lookup.table_rows};
  const std::int64_t n = fixed > 0 ? fixed : lookup.columns, length = bags.length;
  for (std::int64_t b = begin; b < end; ++b) {
    double sum[narrow] = {};
    if (bags.weights == nullptr) {
      for (std::int64_t i = b * length; i < (b + 1) * length; ++i) {
        const float* x = lookup.table + rows.row(i) * n;
        for (std::int64_t c = 0; c < n; ++c) sum[c] += static_cast<double>(x[c]);
      }
    } else {
      for (std::int64_t i = b * length; i < (b + 1) * length; ++i) {
        const auto weight = static_cast<double>(bags.weights[i]);
        if (weight == 0) continue;
        const float* x = lookup.table + rows.row(i) * n;
        for (std::int64_t c = 0; c < n; ++c) sum[c] += weight * static_cast<double>(x[c]);
      }
    }
    float* y = lookup.y + b * lookup.stride;
    for (std::int64_t c = 0; c < n; ++c) y[c] = static_cast<float>(sum[c]);
  }
}

template <class Id>
void bags_of(const RowBags& bags, std::int64_t begin, std::int64_t end) {
  const RowLookup& lookup = bags.rows;
  const std::int64_t n = lookup.columns, length = bags.length, last = end * length;
  if (n == 1) return narrow_bags<Id, 1>(bags, begin, end);
  if (n <= narrow) return narrow_bags<Id, 0>(bags, begin, end);
  const LookupRows<Id> rows{static_cast<const Id*>(lookup.ids.data), lookup.table_rows};
  const float* weights = bags.weights;
  constexpr std::int64_t ahead = 16;
  const auto fetch = [&](std::int64_t i) TANDEM_LAMBDA {
    if (weights == nullptr || weights[i] != 0) prefetch_row(lookup.table + rows.row(i) * n, n * 4);
  };
  for (std::int64_t i = begin * length; i < begin * length + ahead && i < last; ++i) fetch(i);
  for (std::int64_t b = begin; b < end; ++b) {
    float* y = lookup.y + b * lookup.stride;
    __builtin_memset(y, 0, static_cast<std::size_t>(n) * sizeof(float));
    for (std::int64_t i = b * length; i < (b + 1) * length; ++i) {
      if (i + ahead < last) fetch(i + ahead);
      const float* x = lookup.table + rows.row(i) * n;
      if (weights == nullptr)
        add_one(y, x, n);
      else if (weights[i] != 0)
        add_scaled(y, x, weights[i], n);
    }
  }
}

void bag_range(const RowBags& bags, std::int64_t begin, std::int64_t end) {
  if (bags.rows.ids.wide)
    bags_of<std::int64_t>(bags, begin, end);
  else
    bags_of<std::int32_t>(bags, begin, end);
}
