// Look-ups, and sums of looked-up rows. Included by vector_rows_*.cpp.

template <class Id>
struct LookupRows {
  const Id* ids;
  std::int64_t table_rows;

  TANDEM_INLINE bool absent(std::int64_t i) const { return ids[i] == absent_id<Id>; }
  /// Some row of the table where id i is absent.
  TANDEM_INLINE std::int64_t row(std::int64_t i) const {
    const auto raw = static_cast<std::int64_t>(ids[i]);
    const std::int64_t id = raw + (raw < 0 ? table_rows : 0);
    return id < 0 ? 0 : id < table_rows ? id : table_rows - 1;
  }
};

/// x, or 0 where it is not to be; without a branch, since absent ids cannot be foretold.
TANDEM_INLINE float unless(bool absent, float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  return __builtin_bit_cast(float, absent ? 0 : bits);
}
TANDEM_INLINE Half unless(bool absent, Half x) { return absent ? Half{0} : x; }

using Quarter = float __attribute__((vector_size(16)));
using QuarterUnaligned = float __attribute__((vector_size(16), aligned(4), may_alias));

TANDEM_INLINE Quarter load4(const float* p) {
  return *reinterpret_cast<const QuarterUnaligned*>(p);
}
TANDEM_INLINE Quarter load4(const Half* p) {
  using FourHalves = std::uint16_t __attribute__((vector_size(8), aligned(2), may_alias));
  using FourWords = std::uint32_t __attribute__((vector_size(16)));
  return reinterpret_cast<Quarter>(
      __builtin_convertvector(*reinterpret_cast<const FourHalves*>(p), FourWords) << 16);
}

// How a row is stored: usual stores, or past the caches in vectors of `width` or of 4.
enum class Store { usual, stream, stream4 };

template <Store how, class E>
TANDEM_INLINE void copy_row(const E* x, float* y, std::int64_t n) {
  std::int64_t i = 0;
  if (how == Store::stream4) {
    for (; i < n; i += 4) _mm_stream_ps(y + i, load4(x + i));
    return;
  }
  for (; i + width <= n; i += width) {
    if (how == Store::stream)
      stream(y + i, load_row(x + i));
    else
      store(y + i, load_row(x + i));
  }
  if (i < n) store_rest(y + i, load_row_rest(x + i, n - i), n - i);
}
template <Store how>
TANDEM_INLINE void copy_row(const Half* x, Half* y, std::int64_t n) {
  __builtin_memcpy(y, x, static_cast<std::size_t>(n) * sizeof(Half));
}

template <Store how>
TANDEM_INLINE void clear_row(float* y, std::int64_t n) {
  std::int64_t i = 0;
  if (how == Store::stream4) {
    for (; i < n; i += 4) _mm_stream_ps(y + i, Quarter{});
  } else if (how == Store::stream) {
    for (; i < n; i += width) stream(y + i, V{});
  } else {
    __builtin_memset(y, 0, static_cast<std::size_t>(n) * sizeof(float));
  }
}
template <Store how>
TANDEM_INLINE void clear_row(Half* y, std::int64_t n) {
  __builtin_memset(y, 0, static_cast<std::size_t>(n) * sizeof(Half));
}

TANDEM_INLINE void set_element(float* y, float x) { *y = x; }
TANDEM_INLINE void set_element(float* y, Half x) { *y = number(x); }
TANDEM_INLINE void set_element(Half* y, Half x) { *y = x; }

// Rows of E become rows of Y.
template <Store how, class Id, class E, class Y>
void gather_rows_of(const RowLookup& lookup, std::int64_t begin, std::int64_t end) {
  const LookupRows<Id> rows{static_cast<const Id*>(lookup.ids.data), lookup.table_rows};
  const auto* table = static_cast<const E*>(lookup.table);
  const std::int64_t n = lookup.columns, bytes = n * static_cast<std::int64_t>(sizeof(E));
  constexpr std::int64_t ahead = 16;
  for (std::int64_t i = begin; i < begin + ahead && i < end; ++i)
    prefetch_row(table + rows.row(i) * n, bytes);
  for (std::int64_t i = begin; i < end; ++i) {
    if (i + ahead < end) prefetch_row(table + rows.row(i + ahead) * n, bytes);
    Y* y = static_cast<Y*>(lookup.y) + i * lookup.stride;
    if (rows.absent(i))
      clear_row<how>(y, n);
    else
      copy_row<how>(table + rows.row(i) * n, y, n);
  }
}

template <class Id, class E, class Y>
void gather_any(const RowLookup& lookup, std::int64_t begin, std::int64_t end, bool past_cache) {
  const std::int64_t n = lookup.columns, stride = lookup.stride;
  if (n <= narrow) {
    const LookupRows<Id> rows{static_cast<const Id*>(lookup.ids.data), lookup.table_rows};
    const auto* table = static_cast<const E*>(lookup.table);
    auto* y = static_cast<Y*>(lookup.y);
    if (n == 1 && stride == 1) {
      for (std::int64_t i = begin; i < end; ++i)
        set_element(y + i, unless(rows.absent(i), table[rows.row(i)]));
      return;
    }
    for (std::int64_t i = begin; i < end; ++i) {
      const E* x = table + rows.row(i) * n;
      const bool absent = rows.absent(i);
      for (std::int64_t c = 0; c < n; ++c) set_element(y + i * stride + c, unless(absent, x[c]));
    }
    return;
  }
  const auto lies_at = [&](std::int64_t floats) TANDEM_LAMBDA {
    return sizeof(Y) == sizeof(float) && n % floats == 0 && stride % floats == 0 &&
           reinterpret_cast<std::uintptr_t>(lookup.y) % static_cast<std::uintptr_t>(4 * floats) ==
               0;
  };
  if (past_cache && lies_at(width)) {
    gather_rows_of<Store::stream, Id, E, Y>(lookup, begin, end);
    _mm_sfence();
  } else if (past_cache && lies_at(4)) {
    gather_rows_of<Store::stream4, Id, E, Y>(lookup, begin, end);
    _mm_sfence();
  } else {
    gather_rows_of<Store::usual, Id, E, Y>(lookup, begin, end);
  }
}

template <class Id>
void gather_typed(const RowLookup& lookup, std::int64_t begin, std::int64_t end, bool past_cache) {
  if (!lookup.bfloat16)
    gather_any<Id, float, float>(lookup, begin, end, past_cache);
  else if (lookup.widen)
    gather_any<Id, Half, float>(lookup, begin, end, past_cache);
  else
    gather_any<Id, Half, Half>(lookup, begin, end, past_cache);
}

void gather_range(const RowLookup& lookup, std::int64_t begin, std::int64_t end, bool past_cache) {
  if (lookup.ids.wide)
    gather_typed<std::int64_t>(lookup, begin, end, past_cache);
  else
    gather_typed<std::int32_t>(lookup, begin, end, past_cache);
}

/// sum += weight x
template <class E>
TANDEM_INLINE void add_scaled(float* sum, const E* x, float weight, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + width <= n; i += width) store(sum + i, load(sum + i) + weight * load_row(x + i));
  if (i < n) {
    const std::int64_t rest = n - i;
    store_rest(sum + i, load_rest(sum + i, rest) + weight * load_row_rest(x + i, rest), rest);
  }
}

// Narrow rows: sums in double. A fixed number of columns, or 0 for `columns`.
template <class Id, class E, int fixed>
void narrow_bags(const RowBags& bags, std::int64_t begin, std::int64_t end) {
  const RowLookup& lookup = bags.rows;
  const auto* table = static_cast<const E*>(lookup.table);
  const LookupRows<Id> rows{static_cast<const Id*>(lookup.ids.data), lookup.table_rows};
  const std::int64_t n = fixed > 0 ? fixed : lookup.columns, length = bags.length;
  for (std::int64_t b = begin; b < end; ++b) {
    double sum[narrow] = {};
    if (bags.weights == nullptr) {
      for (std::int64_t i = b * length; i < (b + 1) * length; ++i) {
        const E* x = table + rows.row(i) * n;
        const bool absent = rows.absent(i);
        for (std::int64_t c = 0; c < n; ++c)
          sum[c] += static_cast<double>(number(unless(absent, x[c])));
      }
    } else {
      for (std::int64_t i = b * length; i < (b + 1) * length; ++i) {
        const auto weight = static_cast<double>(bags.weights[i]);
        if (weight == 0 || rows.absent(i)) continue;
        const E* x = table + rows.row(i) * n;
        for (std::int64_t c = 0; c < n; ++c) sum[c] += weight * static_cast<double>(number(x[c]));
      }
    }
    float* y = static_cast<float*>(lookup.y) + b * lookup.stride;
    for (std::int64_t c = 0; c < n; ++c) y[c] = static_cast<float>(sum[c]);
  }
}

template <class Id, class E>
void bags_of(const RowBags& bags, std::int64_t begin, std::int64_t end) {
  const RowLookup& lookup = bags.rows;
  const std::int64_t n = lookup.columns, length = bags.length, last = end * length;
  if (n == 1) return narrow_bags<Id, E, 1>(bags, begin, end);
  if (n <= narrow) return narrow_bags<Id, E, 0>(bags, begin, end);
  const auto* table = static_cast<const E*>(lookup.table);
  const LookupRows<Id> rows{static_cast<const Id*>(lookup.ids.data), lookup.table_rows};
  const float* weights = bags.weights;
  constexpr std::int64_t ahead = 16;
  const auto fetch = [&](std::int64_t i) TANDEM_LAMBDA {
    if (weights == nullptr || weights[i] != 0)
      prefetch_row(table + rows.row(i) * n, n * static_cast<std::int64_t>(sizeof(E)));
  };
  for (std::int64_t i = begin * length; i < begin * length + ahead && i < last; ++i) fetch(i);
  for (std::int64_t b = begin; b < end; ++b) {
    float* y = static_cast<float*>(lookup.y) + b * lookup.stride;
    __builtin_memset(y, 0, static_cast<std::size_t>(n) * sizeof(float));
    for (std::int64_t i = b * length; i < (b + 1) * length; ++i) {
      if (i + ahead < last) fetch(i + ahead);
      if (rows.absent(i)) continue;
      const E* x = table + rows.row(i) * n;
      if (weights == nullptr)
        add_one(y, x, n);
      else if (weights[i] != 0)
        add_scaled(y, x, weights[i], n);
    }
  }
}

template <class Id>
void bags_typed(const RowBags& bags, std::int64_t begin, std::int64_t end) {
  if (bags.rows.bfloat16)
    bags_of<Id, Half>(bags, begin, end);
  else
    bags_of<Id, float>(bags, begin, end);
}

void bag_range(const RowBags& bags, std::int64_t begin, std::int64_t end) {
  if (bags.rows.ids.wide)
    bags_typed<std::int64_t>(bags, begin, end);
  else
    bags_typed<std::int32_t>(bags, begin, end);
}
