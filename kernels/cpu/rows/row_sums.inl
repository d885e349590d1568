// Sums of the gradient rows of a group. Included by vector_rows_*.cpp.

#define TANDEM_LAMBDA __attribute__((always_inline))

using Half = std::uint16_t;  // a bfloat16

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

TANDEM_INLINE std::int64_t group_begin(const RowGradients& g, std::int64_t group) {
  return g.offsets == nullptr ? group : g.offsets[group];
}

// Rows are fetched into the second cache: where many are on their way, the few buffers between the
// first and the second one would limit them.
constexpr std::int64_t rows_ahead = 64;
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
  /// And its weight, where that is asked for.
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
template <class E>
struct RowStream {
  using Element = E;
  static constexpr std::int64_t ahead = rows_ahead;
  GradientRows<E> rows;
  std::int64_t at, end, bytes;
  const E* coming[ahead];

  TANDEM_INLINE RowStream(const RowGradients& g, std::int64_t from, std::int64_t to)
      : rows(g), at(from), end(to), bytes(g.columns * static_cast<std::int64_t>(sizeof(E))) {
    for (std::int64_t k = from; k < from + ahead && k < to; ++k) fetch(k);
  }
  TANDEM_INLINE void fetch(std::int64_t k) {
    const E* row = rows.row(k);
    coming[k % ahead] = row;
    prefetch_row(row, bytes);
  }
  TANDEM_INLINE const E* next() {
    const E* row = coming[at % ahead];
    if (at + ahead < end) fetch(at + ahead);
    ++at;
    return row;
  }
};

// The same rows times their weights, in float32, in two buffers by turns.
template <class E>
struct WeightedStream {
  using Element = float;
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

/// sum = a, or a + b
template <class E>
TANDEM_INLINE void set_row(float* sum, const E* a, const E* b, std::int64_t n) {
  std::int64_t i = 0;
  if (b == nullptr) {
    for (; i + width <= n; i += width) store(sum + i, load_row(a + i));
    if (i < n) store_rest(sum + i, load_row_rest(a + i, n - i), n - i);
    return;
  }
  for (; i + width <= n; i += width) store(sum + i, load_row(a + i) + load_row(b + i));
  if (i < n) {
    const std::int64_t rest = n - i;
    store_rest(sum + i, load_row_rest(a + i, rest) + load_row_rest(b + i, rest), rest);
  }
}

/// sum = (sum + a) + b
template <class E>
TANDEM_INLINE void add_two(float* sum, const E* a, const E* b, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + width <= n; i += width)
    store(sum + i, (load(sum + i) + load_row(a + i)) + load_row(b + i));
  if (i < n) {
    const std::int64_t rest = n - i;
    const V first = load_rest(sum + i, rest) + load_row_rest(a + i, rest);
    store_rest(sum + i, first + load_row_rest(b + i, rest), rest);
  }
}
template <class E>
TANDEM_INLINE void add_one(float* sum, const E* a, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + width <= n; i += width) store(sum + i, load(sum + i) + load_row(a + i));
  if (i < n) {
    const std::int64_t rest = n - i;
    store_rest(sum + i, load_rest(sum + i, rest) + load_row_rest(a + i, rest), rest);
  }
}

// sum = the next `count` >= 1 rows
template <class Stream>
TANDEM_INLINE void sum_few(Stream& stream, std::int64_t count, float* sum, std::int64_t n) {
  const typename Stream::Element* a = stream.next();
  set_row(sum, a, count > 1 ? stream.next() : nullptr, n);
  std::int64_t k = 2;
  for (; k + 2 <= count; k += 2) {
    a = stream.next();
    add_two(sum, a, stream.next(), n);
  }
  if (k < count) add_one(sum, stream.next(), n);
}

// Sums of sums of few rows, so that the rounding of a row met 100,000 times stays small.
constexpr std::int64_t few = 64, many = few * few;
template <class Stream>
void sum_many(Stream& stream, std::int64_t count, float* buffers, std::int64_t n) {
  float *total = buffers, *middle = buffers + row_pitch(n), *low = middle + row_pitch(n);
  for (std::int64_t done = 0; done < count; done += many) {
    const std::int64_t size = count - done < many ? count - done : many;
    float* to = done == 0 ? total : middle;
    sum_few(stream, size < few ? size : few, to, n);
    for (std::int64_t k = few; k < size; k += few) {
      sum_few(stream, size - k < few ? size - k : few, low, n);
      add_one(to, low, n);
    }
    if (done > 0) add_one(total, middle, n);
  }
}

TANDEM_INLINE const float* as_floats(const float* row, float*, std::int64_t) { return row; }
TANDEM_INLINE const float* as_floats(const Half* row, float* buffer, std::int64_t n) {
  set_row(buffer, row, static_cast<const Half*>(nullptr), n);
  return buffer;
}

/// The sum of the next `count` rows: in the buffers, or the row itself.
template <class Stream>
TANDEM_INLINE const float* sum_group(Stream& stream, std::int64_t count, float* buffers,
                                     std::int64_t n) {
  if (count == 1) return as_floats(stream.next(), buffers, n);
  if (count == 0)
    __builtin_memset(buffers, 0, static_cast<std::size_t>(n) * sizeof(float));
  else if (count <= few)
    sum_few(stream, count, buffers, n);
  else
    sum_many(stream, count, buffers, n);
  return buffers;
}

TANDEM_INLINE bool is_weighted(const RowGradients& g) {
  bool weighted = false;
  for (int i = 0; i < g.count; ++i) weighted |= g.arrays[i].weights != nullptr;
  return weighted;
}

/// f(group, sum) for groups first..last
template <class E, class F>
TANDEM_INLINE void for_groups(const RowGradients& g, std::int64_t first, std::int64_t last,
                              float* buffers, F f) {
  const std::int64_t begin = group_begin(g, first), end = group_begin(g, last);
  if (is_weighted(g)) {
    WeightedStream<E> stream(g, begin, end, buffers + 3 * row_pitch(g.columns));
    for (std::int64_t i = first; i < last; ++i)
      f(i, sum_group(stream, group_begin(g, i + 1) - group_begin(g, i), buffers, g.columns));
    return;
  }
  RowStream<E> stream(g, begin, end);
  for (std::int64_t i = first; i < last; ++i)
    f(i, sum_group(stream, group_begin(g, i + 1) - group_begin(g, i), buffers, g.columns));
}

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

template <class E>
void sum_groups(const RowGradients& g, std::int64_t first, std::int64_t last, float* sums,
                float* buffers) {
  const std::int64_t n = g.columns;
  if (n <= narrow) {
    narrow_sums(g, GradientRows<E>(g), first, last, sums + first * n);
    return;
  }
  for_groups<E>(g, first, last, buffers, [=](std::int64_t i, const float* sum) TANDEM_LAMBDA {
    set_row(sums + i * n, sum, static_cast<const float*>(nullptr), n);
  });
}
void sum_range(const RowGradients& g, std::int64_t first, std::int64_t last, float* sums,
               float* buffers) {
  if (g.bfloat16)
    sum_groups<Half>(g, first, last, sums, buffers);
  else
    sum_groups<float>(g, first, last, sums, buffers);
}

template <class E>
double squares_of(const RowGradients& g, std::int64_t first, std::int64_t last, float* buffers) {
  double total = 0;
  for_groups<E>(g, first, last, buffers, [&](std::int64_t, const float* sum) TANDEM_LAMBDA {
    double lanes[4] = {};
    std::int64_t c = 0;
    for (; c + 4 <= g.columns; c += 4) {
      for (int k = 0; k < 4; ++k) {
        const auto x = static_cast<double>(sum[c + k]);
        lanes[k] += x * x;
      }
    }
    for (; c < g.columns; ++c) {
      const auto x = static_cast<double>(sum[c]);
      lanes[0] += x * x;
    }
    total += (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  });
  return total;
}
double squares_range(const RowGradients& g, std::int64_t first, std::int64_t last, float* buffers) {
  return g.bfloat16 ? squares_of<Half>(g, first, last, buffers)
                    : squares_of<float>(g, first, last, buffers);
}
