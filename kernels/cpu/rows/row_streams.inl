// Gradient rows one after the other in the order of their groups, fetched ahead. Included by
// vector_rows_*.cpp.

TANDEM_INLINE V load_row(const float* p) { return load(p); }
TANDEM_INLINE V load_row_rest(const float* p, std::int64_t n) { return load_rest(p, n); }
TANDEM_INLINE V load_row(const Half* p) {
  using Halves = std::uint16_t __attribute__((vector_size(2 * width), aligned(2), may_alias));
  using Words = std::uint32_t __attribute__((vector_size(4 * width)));
  return reinterpret_cast<V>(__builtin_convertvector(*reinterpret_cast<const Halves*>(p), Words)
                             << 16);
}
TANDEM_INLINE V load_row_rest(const Half* p, std::int64_t n) {
  Half buffer[width] = {};
  for (std::int64_t i = 0; i < n; ++i) buffer[i] = p[i];
  return load_row(buffer);
}
TANDEM_INLINE float number(float x) { return x; }
TANDEM_INLINE float number(Half x) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(x) << 16);
}

/// Rows of at most that many whole vectors have loops of their own, which are straight code: their
/// sums stay in registers, and more loads of later rows are on their way.
constexpr int most_vectors = 12;

/// f(vectors) with the number of whole vectors of a row as a constant, 0 for any other row.
template <int vectors = most_vectors, class F>
TANDEM_INLINE void with_vectors(std::int64_t columns, F f) {
  if constexpr (vectors == 0) {
    f(std::integral_constant<int, 0>{});
  } else if (columns == vectors * width) {
    f(std::integral_constant<int, vectors>{});
  } else {
    with_vectors<vectors - 1>(columns, f);
  }
}
/// `columns` again, as a constant where it is.
template <int vectors>
TANDEM_INLINE std::int64_t columns_of(std::int64_t columns) {
  return vectors > 0 ? vectors * width : columns;
}

TANDEM_INLINE std::int64_t group_begin(const RowGradients& g, std::int64_t group) {
  return g.offsets == nullptr ? group : g.offsets[group];
}

// Rows are fetched into the second cache: where many are on their way, the few buffers between the
// first and the second one would limit them. That cache has to hold them all.
constexpr std::int64_t rows_ahead = 192;
TANDEM_INLINE void prefetch_row(const void* row, std::int64_t bytes) {
  const char* p = static_cast<const char*>(row);
  const std::int64_t most = bytes < 1024 ? bytes : 1024;  // the processor follows longer streams
  for (std::int64_t line = 0; line < most; line += 64) __builtin_prefetch(p + line, 0, 1);
}

/// x * factor rounded down, where factor is 1 over a whole number. Exact below 2^31: the half keeps
/// multiples of that number away from rounding.
TANDEM_INLINE std::int64_t divided(std::int64_t x, double factor) {
  return static_cast<std::int64_t>((static_cast<double>(x) + 0.5) * factor);
}

// Finds gradient rows.
template <class E>
struct GradientRows {
  const GradientArray* arrays;
  int count;
  std::int64_t each;  // rows of every array, 0 where they differ
  double inverse;     // 1 / each
  bool shared;        // some rows belong to several positions
  bool weighted;      // some array has weights
  const std::int32_t* order;

  TANDEM_INLINE explicit GradientRows(const RowGradients& g)
      : arrays(g.arrays),
        count(g.count),
        each(g.arrays[0].rows),
        inverse(0),
        shared(false),
        weighted(false),
        order(g.order) {
    for (int i = 0; i < count; ++i) {
      each = arrays[i].rows == each ? each : 0;
      shared |= arrays[i].share != 1;
      weighted |= arrays[i].weights != nullptr;
    }
    if (each > 0) inverse = 1.0 / static_cast<double>(each);
  }

  /// The k-th in the groups' order.
  TANDEM_INLINE const E* row(std::int64_t k) const {
    float weight;
    return row(k, false, weight);
  }
  /// As above, also gives the row's weight, where `with_weight`.
  TANDEM_INLINE const E* row(std::int64_t k, bool with_weight, float& weight) const {
    std::int64_t position = order == nullptr ? k : order[k];
    const GradientArray* array = arrays;
    if (count > 1) {
      if (each > 0) {
        const std::int64_t i = divided(position, inverse);
        array += i;
        position -= i * each;
      } else {
        while (position >= array->rows) {
          position -= array->rows;
          ++array;
        }
      }
    }
    if (with_weight) weight = array->weights == nullptr ? 1.0f : array->weights[position];
    if (shared) position = divided(position, array->share);
    return static_cast<const E*>(array->data) + position * array->stride;
  }
};

// The rows begin..end of the groups' order, one after the other; those ahead are on their way.
template <class E, int row_vectors>
struct RowStream {
  using Element = E;
  static constexpr int vectors = row_vectors;
  static constexpr std::int64_t ahead = rows_ahead;
  GradientRows<E> rows;
  std::int64_t at, end, columns;
  const E* coming[ahead];

  TANDEM_INLINE RowStream(const RowGradients& g, std::int64_t from, std::int64_t to)
      : rows(g), at(from), end(to), columns(g.columns) {
    for (std::int64_t k = from; k < from + ahead && k < to; ++k) fetch(k);
  }
  TANDEM_INLINE void fetch(std::int64_t k) {
    const E* row = rows.row(k);
    coming[k % ahead] = row;
    prefetch_row(row, columns_of<vectors>(columns) * static_cast<std::int64_t>(sizeof(E)));
  }
  TANDEM_INLINE const E* next() {
    const E* row = coming[at % ahead];
    if (at + ahead < end) fetch(at + ahead);
    ++at;
    return row;
  }
};

// Like RowStream, but rows are multiplied by their weights in float32, in two buffers used in turn.
template <class E>
struct WeightedStream {
  using Element = float;
  static constexpr int vectors = 0;
  static constexpr std::int64_t ahead = rows_ahead;
  GradientRows<E> rows;
  std::int64_t at, end, columns;
  float* buffers;
  const E* coming[ahead];
  float weights[ahead];

  TANDEM_INLINE WeightedStream(const RowGradients& g, std::int64_t from, std::int64_t to,
                               float* two_rows)
      : rows(g), at(from), end(to), columns(g.columns), buffers(two_rows) {
    for (std::int64_t k = from; k < from + ahead && k < to; ++k) fetch(k);
  }
  TANDEM_INLINE void fetch(std::int64_t k) {
    const E* row = rows.row(k, true, weights[k % ahead]);
    coming[k % ahead] = row;
    prefetch_row(row, columns * static_cast<std::int64_t>(sizeof(E)));
  }
  TANDEM_INLINE const float* next() {
    const E* row = coming[at % ahead];
    const float weight = weights[at % ahead];
    float* product = buffers + at % 2 * row_pitch(columns);
    std::int64_t i = 0;
    for (; i + width <= columns; i += width) store(product + i, weight * load_row(row + i));
    if (i < columns) {
      const std::int64_t rest = columns - i;
      store_rest(product + i, weight * load_row_rest(row + i, rest), rest);
    }
    if (at + ahead < end) fetch(at + ahead);
    ++at;
    return product;
  }
};
