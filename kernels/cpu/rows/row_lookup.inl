// Look-ups. Included by vector_rows_*.cpp.

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
