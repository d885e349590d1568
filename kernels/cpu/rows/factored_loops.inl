// The walks of kinds with factored statistics (engine/optimizers/adafactor.h) over matrices or a
// vector. Included by rule_loops.inl.

/// f(i, n) for every vector of 0..count; n < width: the last one has that many lanes.
template <class F>
TANDEM_INLINE void each_vector(std::int64_t count, F f) {
  std::int64_t i = 0;
  for (; i + width <= count; i += width) f(i, static_cast<std::int64_t>(width));
  if (i < count) f(i, count - i);
}
TANDEM_INLINE V load_lanes(const float* p, std::int64_t n) {
  return n == width ? load(p) : load_rest(p, n);
}
TANDEM_INLINE void store_lanes(float* p, V x, std::int64_t n) {
  n == width ? store(p, x) : store_rest(p, x, n);
}
/// Lanes from n on become 0.
TANDEM_INLINE V first_of(V x, std::int64_t n) {
  if (n == width) return x;
  float lanes[width];
  store(lanes, x);
  return load_part(lanes, n);
}

/// sums[0] += the squares of masters; column_sums += the statistics of columns. States of rows
/// move, and where the block has no column_sums those of columns.
template <class R>
void walk_statistics(const void* factors, const FactoredBlock& b, double* sums) {
  using Kind = typename R::Kind;
  const typename R::Step step = step_of<R>(factors);
  HalfDoubles low = {}, high = {};
  const auto columns = static_cast<float>(b.columns);
  for (std::int64_t row = 0; row < b.rows; ++row) {
    const float *w = b.w + row * b.columns, *g = b.g + row * b.columns;
    V sum = {};
    each_vector(b.columns, [&](std::int64_t i, std::int64_t n) TANDEM_LAMBDA {
      // Beyond the end, 0 times an infinite scale is no number.
      const V statistic = first_of(Kind::statistic(step, load_lanes(g + i, n)), n);
      add_squares(load_lanes(w + i, n), low, high);
      sum += statistic;
      if (b.column_sums == nullptr)
        store_lanes(b.column_states + i,
                    Kind::moved(step, load_lanes(b.column_states + i, n), statistic), n);
      else
        store_lanes(b.column_sums + i, load_lanes(b.column_sums + i, n) + statistic, n);
    });
    if (b.row_states != nullptr)
      b.row_states[row] = Kind::moved(step, b.row_states[row], sum_lanes(sum) / columns);
  }
  sums[0] += sum_doubles(low + high);
}

template <class R>
void move_columns(const void* factors, float* states, const float* sums, float rows,
                  std::int64_t n) {
  using Kind = typename R::Kind;
  const typename R::Step step = step_of<R>(factors);
  each_vector(n, [&](std::int64_t i, std::int64_t lanes) TANDEM_LAMBDA {
    const V moved =
        Kind::moved(step, load_lanes(states + i, lanes), load_lanes(sums + i, lanes) / rows);
    store_lanes(states + i, moved, lanes);
  });
}

template <class R, class F>
TANDEM_INLINE void walk_directions(const typename R::Step& step, const FactoredBlock& b, F f) {
  using Kind = typename R::Kind;
  for (std::int64_t row = 0; row < b.rows; ++row) {
    const float factor =
        b.row_states == nullptr ? 1.0f : Kind::row_factor(step, b.row_states[row], b.mean_of_rows);
    const std::int64_t first = row * b.columns;
    each_vector(b.columns, [&](std::int64_t i, std::int64_t n) TANDEM_LAMBDA {
      f(first + i, n,
        Kind::direction(step, load_lanes(b.g + first + i, n), factor,
                        load_lanes(b.column_states + i, n)));
    });
  }
}

/// sums[1] += the squares of directions.
template <class R>
void square_directions(const void* factors, const FactoredBlock& b, double* sums) {
  HalfDoubles low = {}, high = {};
  walk_directions<R>(step_of<R>(factors), b,
                     [&](std::int64_t, std::int64_t n, V direction) TANDEM_LAMBDA {
                       // Lanes beyond the end may be no numbers: 0 / 0.
                       add_squares(first_of(direction, n), low, high);
                     });
  sums[1] += sum_doubles(low + high);
}

template <class R>
void step_directions(const void* factors, float factor, const FactoredBlock& b) {
  using Kind = typename R::Kind;
  const typename R::Step step = step_of<R>(factors);
  walk_directions<R>(step, b, [&](std::int64_t i, std::int64_t n, V direction) TANDEM_LAMBDA {
    store_lanes(b.w + i, Kind::last(step, load_lanes(b.w + i, n), direction, factor), n);
  });
}
