// Pooling of one map, compiled once for each instruction set: plain loops over lanes that the
// compiler turns into vectors. Included inside a namespace and a `#pragma GCC target` region.

/// Taps first..last of the window at output position `at` that meet data.
struct Taps {
  std::int64_t first, last, origin;
};

inline Taps taps_at(const PoolingAxis& a, std::int64_t at) {
  const std::int64_t origin = at * a.stride - a.pad_begin;
  const std::int64_t before = origin < 0 ? (-origin + a.dilation - 1) / a.dilation : 0;
  const std::int64_t room = a.in - origin;
  const std::int64_t after = room <= 0 ? 0 : (room + a.dilation - 1) / a.dilation;
  return {before, std::min(a.window, after), origin};
}

/// Taps that lie in the data or its padding.
inline std::int64_t padded_taps(const PoolingAxis& a, std::int64_t at) {
  const std::int64_t room = a.in + a.pad_end - (at * a.stride - a.pad_begin);
  return room <= 0 ? 0 : std::min(a.window, (room + a.dilation - 1) / a.dilation);
}

/// An output position and the taps of its window.
struct Window {
  std::int64_t plane, row, column;
  Taps depth, rows, columns;
};

// `deep`: there are three axes; else no loop over the first one is left.

/// f(window) for each output position.
template <bool deep, class F>
inline void each_window(const Pooling& p, F&& f) {
  const std::int64_t planes = deep ? p.depth.out : 1;
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    const Taps depth = deep ? taps_at(p.depth, plane) : Taps{0, 1, 0};
    for (std::int64_t row = 0; row < p.rows.out; ++row) {
      const Taps rows = taps_at(p.rows, row);
      for (std::int64_t column = 0; column < p.columns.out; ++column) {
        f(Window{plane, row, column, depth, rows, taps_at(p.columns, column)});
      }
    }
  }
}

/// f(place in x) for each tap of a window that meets data, in the order of memory.
template <bool deep, class F>
inline void each_tap(const Pooling& p, const Window& w, F&& f) {
  const std::int64_t first = deep ? w.depth.first : 0, last = deep ? w.depth.last : 1;
  for (std::int64_t d = first; d < last; ++d) {
    const std::int64_t plane = deep ? w.depth.origin + d * p.depth.dilation : 0;
    for (std::int64_t r = w.rows.first; r < w.rows.last; ++r) {
      const std::int64_t row = plane * p.rows.in + w.rows.origin + r * p.rows.dilation;
      for (std::int64_t s = w.columns.first; s < w.columns.last; ++s) {
        const std::int64_t column = w.columns.origin + s * p.columns.dilation;
        f((row * p.columns.in + column) * p.lanes);
      }
    }
  }
}

inline std::int64_t y_at(const Pooling& p, const Window& w) {
  return ((w.plane * p.rows.out + w.row) * p.columns.out + w.column) * p.lanes;
}

/// The larger of both; NaN stays, whichever holds it.
inline void maximum_into(float* __restrict to, const float* __restrict from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float larger = from[i] > to[i] ? from[i] : to[i];  // a NaN is kept only from `to`
    to[i] = from[i] != from[i] ? from[i] : larger;
  }
}

inline void add_into(float* __restrict to, const float* __restrict from, float factor,
                     std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

/// Where x first equals y, the lane's rest of dy is added to dx and the rest becomes 0. y is a copy
/// of the first of the window's largest elements, so that comparing bits finds it, NaN included.
inline void give_to_first(float* __restrict dx, float* __restrict rest, const float* __restrict x,
                          const float* __restrict y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const bool hit = __builtin_bit_cast(int, x[i]) == __builtin_bit_cast(int, y[i]);
    dx[i] += hit ? rest[i] : 0.0f;
    rest[i] = hit ? 0.0f : rest[i];
  }
}

void zero_map(const Pooling& p, float* dx, std::int64_t count) {
  const std::int64_t positions = p.depth.in * p.rows.in * p.columns.in;
  if (p.lanes == count) {
    std::memset(dx, 0, static_cast<std::size_t>(positions * count) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < positions; ++i) {
    std::memset(dx + i * p.lanes, 0, static_cast<std::size_t>(count) * sizeof(float));
  }
}

// Few lanes: their number is known when compiling (`fixed`; 0: it is not), so that no loop is left.
template <int fixed, bool deep>
void maximum(const PoolingMap& m) {
  const Pooling& p = *m.pooling;
  const std::int64_t count = fixed > 0 ? fixed : m.count;
  each_window<deep>(p, [&](const Window& w) {
    float* const y = m.y + y_at(p, w);
    bool first = true;
    each_tap<deep>(p, w, [&](std::int64_t at) {
      const float* const x = m.x + at;
      if (first) {
        std::memcpy(y, x, static_cast<std::size_t>(count) * sizeof(float));
      } else {
        maximum_into(y, x, count);
      }
      first = false;
    });
    if (first) std::fill_n(y, count, -std::numeric_limits<float>::infinity());
  });
}

template <int fixed, bool deep>
void maximum_gradient(const PoolingMap& m) {
  const Pooling& p = *m.pooling;
  zero_map(p, m.dx, m.count);
  constexpr std::int64_t chunk = fixed > 0 ? fixed : 256;
  each_window<deep>(p, [&](const Window& w) {
    const std::int64_t at = y_at(p, w);
    for (std::int64_t begin = 0; begin < m.count; begin += chunk) {
      const std::int64_t count = fixed > 0 ? fixed : std::min(chunk, m.count - begin);
      float rest[chunk];
      std::memcpy(rest, m.dy + at + begin, static_cast<std::size_t>(count) * sizeof(float));
      each_tap<deep>(p, w, [&](std::int64_t place) {
        const std::int64_t x = place + begin;
        give_to_first(m.dx + x, rest, m.x + x, m.y_read + at + begin, count);
      });
    }
  });
}

inline std::int64_t counted_taps(const Pooling& p, const PoolingAxis& axis, std::int64_t at,
                                 const Taps& taps) {
  return p.count_padding ? padded_taps(axis, at)
                         : std::max<std::int64_t>(taps.last - taps.first, 0);
}

template <bool deep>
inline float reciprocal_count(const Pooling& p, const Window& w) {
  const std::int64_t count = (deep ? counted_taps(p, p.depth, w.plane, w.depth) : 1) *
                             counted_taps(p, p.rows, w.row, w.rows) *
                             counted_taps(p, p.columns, w.column, w.columns);
  return count > 0 ? 1.0f / static_cast<float>(count) : 0.0f;
}

template <bool deep>
void average(const PoolingMap& m) {
  const Pooling& p = *m.pooling;
  each_window<deep>(p, [&](const Window& w) {
    float* const y = m.y + y_at(p, w);
    std::memset(y, 0, static_cast<std::size_t>(m.count) * sizeof(float));
    each_tap<deep>(p, w, [&](std::int64_t at) { add_into(y, m.x + at, 1.0f, m.count); });
    const float factor = reciprocal_count<deep>(p, w);
    for (std::int64_t i = 0; i < m.count; ++i) y[i] *= factor;
  });
}

template <bool deep>
void average_gradient(const PoolingMap& m) {
  const Pooling& p = *m.pooling;
  zero_map(p, m.dx, m.count);
  each_window<deep>(p, [&](const Window& w) {
    const float factor = reciprocal_count<deep>(p, w);
    const float* const dy = m.dy + y_at(p, w);
    each_tap<deep>(p, w, [&](std::int64_t at) { add_into(m.dx + at, dy, factor, m.count); });
  });
}

using MapFunction = void (*)(const PoolingMap&);
constexpr std::int64_t few = 17;  // lanes 1..16 have functions of their own

template <int... lanes>
constexpr std::array<MapFunction, sizeof...(lanes)> maxima_of(
    std::integer_sequence<int, lanes...>) {
  return {&maximum<lanes, false>...};
}
template <int... lanes>
constexpr std::array<MapFunction, sizeof...(lanes)> gradients_of(
    std::integer_sequence<int, lanes...>) {
  return {&maximum_gradient<lanes, false>...};
}

void pool_map(const PoolingMap& m) {
  static constexpr auto maxima = maxima_of(std::make_integer_sequence<int, few>{});
  static constexpr auto gradients = gradients_of(std::make_integer_sequence<int, few>{});
  const auto lanes = static_cast<std::size_t>(m.count < few ? m.count : 0);
  const bool deep = m.pooling->is_deep;
  switch (m.pooling->kind) {
    case PoolingKind::maximum:
      return (deep ? &maximum<0, true> : maxima[lanes])(m);
    case PoolingKind::maximum_gradient:
      return (deep ? &maximum_gradient<0, true> : gradients[lanes])(m);
    case PoolingKind::average:
      return (deep ? &average<true> : &average<false>)(m);
    case PoolingKind::average_gradient:
      return (deep ? &average_gradient<true> : &average_gradient<false>)(m);
  }
}
