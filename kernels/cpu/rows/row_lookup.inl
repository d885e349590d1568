// Lookups, and sums of looked-up rows. Included by vector_rows_*.cpp.

// Read in place of an absent id's row.
constexpr std::int64_t most_zeros = 256;
template <class E>
alignas(64) constexpr E zeros[most_zeros] = {};

template <class Id>
struct UnsignedOf {
  using Type = std::uint64_t;
};
template <>
struct UnsignedOf<std::int32_t> {
  using Type = std::uint32_t;
};
template <class Id>
constexpr Id largest_id = static_cast<Id>(~absent_id<Id>);

// Rows of ids, where `negative` also of ids below 0, absent ones among them: those come in no order
// that branches could foretell.
template <class Id, bool negative>
struct LookupRows {
  const Id* ids;
  std::int64_t table_rows;

  explicit LookupRows(const RowLookup& lookup)
      : ids(static_cast<const Id*>(lookup.ids.data)), table_rows(lookup.table_rows) {}

  TANDEM_INLINE bool absent(std::int64_t i) const { return negative && ids[i] == absent_id<Id>; }
  /// Some row of the table where id i is absent.
  TANDEM_INLINE std::int64_t row(std::int64_t i) const {
    auto id = static_cast<std::int64_t>(ids[i]);
    if (negative) {
      id += table_rows & (id >> 63);
      id &= ~(id >> 63);
    }
    return __builtin_expect(id < table_rows, true) ? id : table_rows - 1;
  }
  /// The row of id i in a table of n <= most_zeros columns, zeros where it is absent.
  template <class E>
  TANDEM_INLINE const E* of(const E* table, std::int64_t i, std::int64_t n) const {
    const E* x = table + row(i) * n;
    if (!negative) return x;
    const auto mask = -static_cast<std::uintptr_t>(absent(i));
    return reinterpret_cast<const E*>((reinterpret_cast<std::uintptr_t>(x) & ~mask) |
                                      (reinterpret_cast<std::uintptr_t>(zeros<E>) & mask));
  }
};

/// f(rows, first, last) for ids first..last, which are all of begin..end by turns, so few that the
/// second look at them finds them in a cache. Returns whether all ids are inside the table.
template <class Id, class F>
TANDEM_INLINE bool with_rows_of(const RowLookup& lookup, std::int64_t begin, std::int64_t end,
                                std::int64_t unit, F f) {
  using Bits = typename UnsignedOf<Id>::Type;
  const Id* ids = static_cast<const Id*>(lookup.ids.data);
  const std::int64_t each = (16384 + unit - 1) / unit * unit, rows = lookup.table_rows;
  const Id last_row = static_cast<Id>(rows - 1 < largest_id<Id> ? rows - 1 : largest_id<Id>);
  Id any = 0;  // below 0 where an id is outside
  for (std::int64_t first = begin; first < end; first += each) {
    const std::int64_t last = end - first < each ? end : first + each;
    Id all = 0;
    Bits above = 0;
    for (std::int64_t i = first; i < last; ++i) {
      all |= ids[i];
      above |= static_cast<Bits>(last_row) - static_cast<Bits>(ids[i]);
    }
    if (all >= 0) {
      any |= static_cast<Id>(above);
      f(LookupRows<Id, false>(lookup), first, last);
      continue;
    }
    for (std::int64_t i = first; i < last; ++i) {
      const auto id = static_cast<std::int64_t>(ids[i]);
      any |= -static_cast<Id>(((id >= rows) | (id < -rows)) & (ids[i] != absent_id<Id>));
    }
    f(LookupRows<Id, true>(lookup), first, last);
  }
  return any >= 0;
}
template <class F>
TANDEM_INLINE bool with_rows(const RowLookup& lookup, std::int64_t begin, std::int64_t end,
                             std::int64_t unit, F f) {
  return lookup.ids.wide ? with_rows_of<std::int64_t>(lookup, begin, end, unit, f)
                         : with_rows_of<std::int32_t>(lookup, begin, end, unit, f);
}

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
template <Store how, class E, class Y, int vectors, class Rows>
void gather_rows_of(const Rows& rows, const RowLookup& lookup, std::int64_t begin,
                    std::int64_t end) {
  const auto* table = static_cast<const E*>(lookup.table);
  const std::int64_t n = columns_of<vectors>(lookup.columns),
                     bytes = n * static_cast<std::int64_t>(sizeof(E));
  constexpr std::int64_t ahead = rows_ahead;
  for (std::int64_t i = begin; i < begin + ahead && i < end; ++i)
    prefetch_row(table + rows.row(i) * n, bytes);
  for (std::int64_t i = begin; i < end; ++i) {
    if (i + ahead < end) prefetch_row(table + rows.row(i + ahead) * n, bytes);
    Y* y = static_cast<Y*>(lookup.y) + i * lookup.stride;
    if (n > most_zeros && rows.absent(i))
      clear_row<how>(y, n);
    else
      copy_row<how>(rows.of(table, i, n), y, n);
  }
}

template <class E, class Y, class Rows>
void gather_narrow(const Rows& rows, const RowLookup& lookup, std::int64_t begin,
                   std::int64_t end) {
  const auto* table = static_cast<const E*>(lookup.table);
  auto* y = static_cast<Y*>(lookup.y);
  const std::int64_t n = lookup.columns, stride = lookup.stride;
  if (n == 1 && stride == 1) {
    for (std::int64_t i = begin; i < end; ++i) set_element(y + i, *rows.of(table, i, 1));
    return;
  }
  for (std::int64_t i = begin; i < end; ++i) {
    const E* x = rows.of(table, i, n);
    for (std::int64_t c = 0; c < n; ++c) set_element(y + i * stride + c, x[c]);
  }
}

template <class E, class Y, class Rows>
void gather_any(const Rows& rows, const RowLookup& lookup, std::int64_t begin, std::int64_t end,
                bool past_cache) {
  const std::int64_t n = lookup.columns, stride = lookup.stride;
  if (n <= narrow) return gather_narrow<E, Y>(rows, lookup, begin, end);
  const auto lies_at = [&](std::int64_t floats) TANDEM_LAMBDA {
    return sizeof(Y) == sizeof(float) && n % floats == 0 && stride % floats == 0 &&
           reinterpret_cast<std::uintptr_t>(lookup.y) % static_cast<std::uintptr_t>(4 * floats) ==
               0;
  };
  if (past_cache && lies_at(width)) {
    with_vectors(n, [&](auto vectors) TANDEM_LAMBDA {
      gather_rows_of<Store::stream, E, Y, vectors>(rows, lookup, begin, end);
    });
    _mm_sfence();
  } else if (past_cache && lies_at(4)) {
    gather_rows_of<Store::stream4, E, Y, 0>(rows, lookup, begin, end);
    _mm_sfence();
  } else {
    gather_rows_of<Store::usual, E, Y, 0>(rows, lookup, begin, end);
  }
}

bool gather_range(const RowLookup& lookup, std::int64_t begin, std::int64_t end, bool past_cache) {
  const auto gather = [&](const auto& rows, std::int64_t first, std::int64_t last) TANDEM_LAMBDA {
    if (!lookup.bfloat16)
      gather_any<float, float>(rows, lookup, first, last, past_cache);
    else if (lookup.widen)
      gather_any<Half, float>(rows, lookup, first, last, past_cache);
    else
      gather_any<Half, Half>(rows, lookup, first, last, past_cache);
  };
  return with_rows(lookup, begin, end, 1, gather);
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
template <class E, int fixed, class Rows>
void narrow_bags(const Rows& rows, const RowBags& bags, std::int64_t begin, std::int64_t end) {
  const RowLookup& lookup = bags.rows;
  const auto* table = static_cast<const E*>(lookup.table);
  const std::int64_t n = fixed > 0 ? fixed : lookup.columns, length = bags.length;
  for (std::int64_t b = begin; b < end; ++b) {
    double sum[narrow] = {};
    if (bags.weights == nullptr) {
      for (std::int64_t i = b * length; i < (b + 1) * length; ++i) {
        const E* x = table + rows.row(i) * n;
        for (std::int64_t c = 0; c < n; ++c) sum[c] += static_cast<double>(number(x[c]));
      }
    } else {
      for (std::int64_t i = b * length; i < (b + 1) * length; ++i) {
        if (bags.weights[i] == 0) continue;
        const auto weight = static_cast<double>(bags.weights[i]);
        const E* x = table + rows.row(i) * n;
        for (std::int64_t c = 0; c < n; ++c) sum[c] += weight * static_cast<double>(number(x[c]));
      }
    }
    float* y = static_cast<float*>(lookup.y) + b * lookup.stride;
    for (std::int64_t c = 0; c < n; ++c) y[c] = static_cast<float>(sum[c]);
  }
}

// Rows that are to be added to sums of bags, in their order: a ring whose end is far enough ahead
// for what is fetched there to have come when its turn is.
template <class E>
struct AwaitedRows {
  static constexpr std::int64_t most = 512;  // above rows_ahead and `at_once`
  const E* x[most];
  float* sum[most];
  float weight[most];
};

// For ids that may be absent, as most are where ranks share a table: handles some ids at a time and
// first collects those that are present, without a branch.
template <class E, class Rows>
void bags_of_present(const Rows& rows, const RowBags& bags, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t at_once = 64, last_of_ring = AwaitedRows<E>::most - 1;
  const RowLookup& lookup = bags.rows;
  const auto* table = static_cast<const E*>(lookup.table);
  const float* weights = bags.weights;
  const std::int64_t n = lookup.columns, length = bags.length, ids_end = end * length;
  float* y = static_cast<float*>(lookup.y) + begin * lookup.stride;
  for (std::int64_t b = 0; b < end - begin; ++b)
    __builtin_memset(y + b * lookup.stride, 0, static_cast<std::size_t>(n) * sizeof(float));
  AwaitedRows<E> awaited;
  std::int64_t added = 0, found = 0, i = begin * length, bag_end = i + length;
  while (i < ids_end || added < found) {
    std::int64_t next = found;
    for (const std::int64_t last = ids_end - i < at_once ? ids_end : i + at_once; i < last; ++i) {
      if (i == bag_end) {
        y += lookup.stride;
        bag_end += length;
      }
      const std::int64_t at = next & last_of_ring;
      awaited.x[at] = table + rows.row(i) * n;
      awaited.sum[at] = y;
      awaited.weight[at] = weights == nullptr ? 1 : weights[i];
      next += !rows.absent(i) & (awaited.weight[at] != 0);
    }
    // One row is prefetched for each that is added: memory and sums do not wait for one another.
    const std::int64_t until = i < ids_end ? next - rows_ahead : next;
    while (found < next || added < until) {
      if (found < next)
        prefetch_row(awaited.x[found++ & last_of_ring], n * static_cast<std::int64_t>(sizeof(E)));
      if (added >= until) continue;
      const std::int64_t at = added++ & last_of_ring;
      if (weights == nullptr)
        add_one(awaited.sum[at], awaited.x[at], n);
      else
        add_scaled(awaited.sum[at], awaited.x[at], awaited.weight[at], n);
    }
  }
}

// As above, for narrow rows, a bag at a time.
template <class E, int fixed, class Rows>
void narrow_bags_present(const Rows& rows, const RowBags& bags, std::int64_t begin,
                         std::int64_t end) {
  constexpr std::int64_t at_once = 64;
  const RowLookup& lookup = bags.rows;
  const auto* table = static_cast<const E*>(lookup.table);
  const float* weights = bags.weights;
  const std::int64_t n = fixed > 0 ? fixed : lookup.columns, length = bags.length;
  const E* x[at_once];
  float weight[at_once];
  for (std::int64_t b = begin; b < end; ++b) {
    double sum[narrow] = {};
    for (std::int64_t i = b * length; i < (b + 1) * length;) {
      const std::int64_t rest = (b + 1) * length - i, last = i + (rest < at_once ? rest : at_once);
      std::int64_t count = 0;
      for (; i < last; ++i) {
        x[count] = table + rows.row(i) * n;
        weight[count] = weights == nullptr ? 1 : weights[i];
        count += !rows.absent(i) & (weight[count] != 0);
      }
      for (std::int64_t k = 0; k < count; ++k) {
        for (std::int64_t c = 0; c < n; ++c)
          sum[c] += static_cast<double>(weight[k]) * static_cast<double>(number(x[k][c]));
      }
    }
    float* y = static_cast<float*>(lookup.y) + b * lookup.stride;
    for (std::int64_t c = 0; c < n; ++c) y[c] = static_cast<float>(sum[c]);
  }
}

template <class E, class Id>
void bags_of(const LookupRows<Id, true>& rows, const RowBags& bags, std::int64_t begin,
             std::int64_t end) {
  if (bags.rows.columns == 1) return narrow_bags_present<E, 1>(rows, bags, begin, end);
  if (bags.rows.columns <= narrow) return narrow_bags_present<E, 0>(rows, bags, begin, end);
  bags_of_present<E>(rows, bags, begin, end);
}

template <class E, class Id>
void bags_of(const LookupRows<Id, false>& rows, const RowBags& bags, std::int64_t begin,
             std::int64_t end) {
  const RowLookup& lookup = bags.rows;
  const std::int64_t n = lookup.columns, length = bags.length, last = end * length;
  if (n == 1) return narrow_bags<E, 1>(rows, bags, begin, end);
  if (n <= narrow) return narrow_bags<E, 0>(rows, bags, begin, end);
  const auto* table = static_cast<const E*>(lookup.table);
  const float* weights = bags.weights;
  constexpr std::int64_t ahead = rows_ahead;
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
      const E* x = table + rows.row(i) * n;
      if (weights == nullptr)
        add_one(y, x, n);
      else if (weights[i] != 0)
        add_scaled(y, x, weights[i], n);
    }
  }
}

bool bag_range(const RowBags& bags, std::int64_t begin, std::int64_t end) {
  const std::int64_t length = bags.length;
  const auto sum = [&](const auto& rows, std::int64_t first, std::int64_t last) TANDEM_LAMBDA {
    if (bags.rows.bfloat16)
      bags_of<Half>(rows, bags, first / length, last / length);
    else
      bags_of<float>(rows, bags, first / length, last / length);
  };
  return with_rows(bags.rows, begin * length, end * length, length, sum);
}
