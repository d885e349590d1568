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

/// f(oh, ow, row taps, column taps) for each output position.
template <class F>
inline void each_window(const Pooling& p, F&& f) {
  for (std::int64_t oh = 0; oh < p.rows.out; ++oh) {
    const Taps rows = taps_at(p.rows, oh);
    for (std::int64_t ow = 0; ow < p.columns.out; ++ow) f(oh, ow, rows, taps_at(p.columns, ow));
  }
}

inline std::int64_t x_at(const Pooling& p, const Taps& rows, const Taps& columns, std::int64_t r,
                         std::int64_t s) {
  const std::int64_t row = rows.origin + r * p.rows.dilation;
  const std::int64_t column = columns.origin + s * p.columns.dilation;
  return (row * p.columns.in + column) * p.x_column;
}

inline std::int64_t y_at(const Pooling& p, std::int64_t oh, std::int64_t ow) {
  return (oh * p.columns.out + ow) * p.y_column;
}

/// The larger of both; NaN stays, whichever holds it.
inline void maximum_into(float* __restrict to, const float* __restrict from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float larger = from[i] > to[i] ? from[i] : to[i];  // of NaN the one in `to` alone
    to[i] = from[i] != from[i] ? from[i] : larger;
  }
}

inline void add_into(float* __restrict to, const float* __restrict from, float factor,
                     std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

/// Where x is y for the first time the lane's rest of dy goes to dx and is used up. y is a copy of
/// one of the window's elements, the first of equal ones, so that bits tell it, NaN included.
inline void give_to_first(float* __restrict dx, float* __restrict rest, const float* __restrict x,
                          const float* __restrict y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const bool hit = __builtin_bit_cast(int, x[i]) == __builtin_bit_cast(int, y[i]);
    dx[i] += hit ? rest[i] : 0.0f;
    rest[i] = hit ? 0.0f : rest[i];
  }
}

void zero_map(const Pooling& p, float* dx, std::int64_t count) {
  const std::int64_t positions = p.rows.in * p.columns.in;
  if (p.x_column == count) {
    std::memset(dx, 0, static_cast<std::size_t>(positions * count) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < positions; ++i) {
    std::memset(dx + i * p.x_column, 0, static_cast<std::size_t>(count) * sizeof(float));
  }
}

// Few lanes: their number is known when compiling (`fixed`; 0: it is not), so that no loop is left.
template <int fixed>
void maximum(const PoolingMap& m) {
  const Pooling& p = *m.pooling;
  const std::int64_t count = fixed > 0 ? fixed : m.count;
  each_window(p, [&](std::int64_t oh, std::int64_t ow, const Taps& rows, const Taps& columns) {
    float* const y = m.y + y_at(p, oh, ow);
    bool first = true;
    for (std::int64_t r = rows.first; r < rows.last; ++r) {
      for (std::int64_t s = columns.first; s < columns.last; ++s) {
        const float* const x = m.x + x_at(p, rows, columns, r, s);
        if (first) {
          std::memcpy(y, x, static_cast<std::size_t>(count) * sizeof(float));
        } else {
          maximum_into(y, x, count);
        }
        first = false;
      }
    }
    if (first) std::fill_n(y, count, -std::numeric_limits<float>::infinity());
  });
}

template <int fixed>
void maximum_gradient(const PoolingMap& m) {
  const Pooling& p = *m.pooling;
  zero_map(p, m.dx, m.count);
  constexpr std::int64_t chunk = fixed > 0 ? fixed : 256;
  each_window(p, [&](std::int64_t oh, std::int64_t ow, const Taps& rows, const Taps& columns) {
    const std::int64_t at = y_at(p, oh, ow);
    for (std::int64_t begin = 0; begin < m.count; begin += chunk) {
      const std::int64_t count = fixed > 0 ? fixed : std::min(chunk, m.count - begin);
      float rest[chunk];
      std::memcpy(rest, m.dy + at + begin, static_cast<std::size_t>(count) * sizeof(float));
      for (std::int64_t r = rows.first; r < rows.last; ++r) {
        for (std::int64_t s = columns.first; s < columns.last; ++s) {
          const std::int64_t x = x_at(p, rows, columns, r, s) + begin;
          give_to_first(m.dx + x, rest, m.x + x, m.y_read + at + begin, count);
        }
      }
    }
  });
}

inline float reciprocal_count(const Pooling& p, std::int64_t oh, std::int64_t ow, const Taps& rows,
                              const Taps& columns) {
  const std::int64_t count = p.count_padding
                                 ? padded_taps(p.rows, oh) * padded_taps(p.columns, ow)
                                 : std::max<std::int64_t>(rows.last - rows.first, 0) *
                                       std::max<std::int64_t>(columns.last - columns.first, 0);
  return count > 0 ? 1.0f / static_cast<float>(count) : 0.0f;
}

void average(const PoolingMap& m) {
  const Pooling& p = *m.pooling;
  each_window(p, [&](std::int64_t oh, std::int64_t ow, const Taps& rows, const Taps& columns) {
    float* const y = m.y + y_at(p, oh, ow);
    std::memset(y, 0, static_cast<std::size_t>(m.count) * sizeof(float));
    for (std::int64_t r = rows.first; r < rows.last; ++r) {
      for (std::int64_t s = columns.first; s < columns.last; ++s) {
        add_into(y, m.x + x_at(p, rows, columns, r, s), 1.0f, m.count);
      }
    }
    const float factor = reciprocal_count(p, oh, ow, rows, columns);
    for (std::int64_t i = 0; i < m.count; ++i) y[i] *= factor;
  });
}

void average_gradient(const PoolingMap& m) {
  const Pooling& p = *m.pooling;
  zero_map(p, m.dx, m.count);
  each_window(p, [&](std::int64_t oh, std::int64_t ow, const Taps& rows, const Taps& columns) {
    const float factor = reciprocal_count(p, oh, ow, rows, columns);
    const float* const dy = m.dy + y_at(p, oh, ow);
    for (std::int64_t r = rows.first; r < rows.last; ++r) {
      for (std::int64_t s = columns.first; s < columns.last; ++s) {
        add_into(m.dx + x_at(p, rows, columns, r, s), dy, factor, m.count);
      }
    }
  });
}

using MapFunction = void (*)(const PoolingMap&);
constexpr std::int64_t few = 17;  // lanes 1..16 have functions of their own

template <int... lanes>
constexpr std::array<MapFunction, sizeof...(lanes)> maxima_of(
    std::integer_sequence<int, lanes...>) {
  return {&maximum<lanes>...};
}
template <int... lanes>
constexpr std::array<MapFunction, sizeof...(lanes)> gradients_of(
    std::integer_sequence<int, lanes...>) {
  return {&maximum_gradient<lanes>...};
}

void pool_map(const PoolingMap& m) {
  static constexpr auto maxima = maxima_of(std::make_integer_sequence<int, few>{});
  static constexpr auto gradients = gradients_of(std::make_integer_sequence<int, few>{});
  const auto lanes = static_cast<std::size_t>(m.count < few ? m.count : 0);
  switch (m.pooling->kind) {
    case PoolingKind::maximum:
      maxima[lanes](m);
      break;
    case PoolingKind::maximum_gradient:
      gradients[lanes](m);
      break;
    case PoolingKind::average:
      average(m);
      break;
    case PoolingKind::average_gradient:
      average_gradient(m);
      break;
  }
}
