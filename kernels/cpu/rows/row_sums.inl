// Sums of the gradient rows of a group. Included by vector_rows_*.cpp.

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

// The sum_few for rows of that many vectors.
template <class Stream, std::size_t... v>
TANDEM_INLINE void sum_few(Stream& stream, std::int64_t count, float* sum,
                           std::index_sequence<v...>) {
  const typename Stream::Element* a = stream.next();
  V total[] = {load_row(a + v * width)...};
  for (std::int64_t k = 1; k < count; ++k) {
    a = stream.next();
    ((total[v] = total[v] + load_row(a + v * width)), ...);
  }
  (store(sum + v * width, total[v]), ...);
}

// sum = the next `count` >= 1 rows
template <class Stream>
TANDEM_INLINE void sum_few(Stream& stream, std::int64_t count, float* sum, std::int64_t n) {
  if constexpr (Stream::vectors > 0) {
    sum_few(stream, count, sum, std::make_index_sequence<Stream::vectors>{});
    return;
  }
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

template <class Stream, class F>
TANDEM_INLINE void for_groups_of(Stream stream, const RowGradients& g, std::int64_t first,
                                 std::int64_t last, float* buffers, F f) {
  const std::int64_t n = columns_of<Stream::vectors>(g.columns);
  for (std::int64_t i = first; i < last; ++i) {
    const float* sum = sum_group(stream, group_begin(g, i + 1) - group_begin(g, i), buffers, n);
    f(i, sum, n);
  }
}

/// f(group, sum, columns) for groups first..last
template <class E, class F>
TANDEM_INLINE void for_groups(const RowGradients& g, std::int64_t first, std::int64_t last,
                              float* buffers, F f) {
  const std::int64_t begin = group_begin(g, first), end = group_begin(g, last);
  if (is_weighted(g)) {
    float* products = buffers + 3 * row_pitch(g.columns);
    for_groups_of(WeightedStream<E>(g, begin, end, products), g, first, last, buffers, f);
    return;
  }
  with_vectors(g.columns, [&](auto vectors) TANDEM_LAMBDA {
    for_groups_of(RowStream<E, vectors>(g, begin, end), g, first, last, buffers, f);
  });
}

template <class E>
void sum_groups(const RowGradients& g, std::int64_t first, std::int64_t last, float* sums,
                float* buffers) {
  const std::int64_t n = g.columns;
  if (n <= narrow) {
    narrow_sums(g, GradientRows<E>(g), first, last, sums + first * n);
    return;
  }
  for_groups<E>(g, first, last, buffers,
                [=](std::int64_t i, const float* sum, std::int64_t columns) TANDEM_LAMBDA {
                  set_row(sums + i * columns, sum, static_cast<const float*>(nullptr), columns);
                });
}
void sum_range(const RowGradients& g, std::int64_t first, std::int64_t last, float* sums,
               float* buffers) {
  if (g.bfloat16)
    sum_groups<Half>(g, first, last, sums, buffers);
  else
    sum_groups<float>(g, first, last, sums, buffers);
}

/// What is done with the sum of each group; the walk above is compiled once for all that call it
/// so.
struct GroupUse {
  void (*call)(void* self, std::int64_t group, const float* sum, std::int64_t columns);
  void* self;
};
template <class F>
void call_use(void* self, std::int64_t group, const float* sum, std::int64_t columns) {
  (*static_cast<F*>(self))(group, sum, columns);
}
template <class E>
void walk_groups(const RowGradients& g, std::int64_t first, std::int64_t last, float* buffers,
                 GroupUse use) {
  for_groups<E>(g, first, last, buffers,
                [=](std::int64_t i, const float* sum, std::int64_t columns)
                    TANDEM_LAMBDA { use.call(use.self, i, sum, columns); });
}
/// f(group, sum, columns) for groups first..last
template <class F>
TANDEM_INLINE void use_groups(const RowGradients& g, std::int64_t first, std::int64_t last,
                              float* buffers, F f) {
  const GroupUse use{call_use<F>, &f};
  if (g.bfloat16)
    walk_groups<Half>(g, first, last, buffers, use);
  else
    walk_groups<float>(g, first, last, buffers, use);
}

double squares_range(const RowGradients& g, std::int64_t first, std::int64_t last, float* buffers) {
  double total = 0;
  use_groups(g, first, last, buffers, [&](std::int64_t, const float* sum, std::int64_t columns) {
    double lanes[4] = {};
    std::int64_t c = 0;
    for (; c + 4 <= columns; c += 4) {
      for (int k = 0; k < 4; ++k) {
        const auto x = static_cast<double>(sum[c + k]);
        lanes[k] += x * x;
      }
    }
    for (; c < columns; ++c) {
      const auto x = static_cast<double>(sum[c]);
      lanes[0] += x * x;
    }
    total += (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  });
  return total;
}
