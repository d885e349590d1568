// The body of the matrix product, compiled once for each instruction set. Included inside a namespace
// and a `#pragma GCC target` region that define Vector (width, load, store, mask, transpose) and
// max_rows: a tile is at most max_rows x 2 vectors of accumulators.

/// Where a finished tile goes. Lines run along C's unit stride: rows of C, or columns where transposed.
struct Finish {
  float* c;
  std::int64_t c_line;  // stride between lines
  const float* bias_along;    // bias per element of a line, or null
  const float* bias_across;   // bias per line, or null
  const float* multiplier;
  std::int64_t multiplier_line;
  float alpha;
  bool accumulate;
  Activation activation;  // set only for the last block of k

  bool plain() const {
    return !bias_along && !bias_across && activation != Activation::relu &&
           activation != Activation::relu_grad;
  }
};

inline Vector::Type finish(const Finish& f, Vector::Type value, const float* c, std::int64_t line,
                           std::int64_t at, Vector::Mask mask) {
  value = Vector::mul(value, Vector::all(f.alpha));
  if (f.accumulate) value = Vector::add(value, Vector::load(c, mask));
  if (f.bias_along) value = Vector::add(value, Vector::load(f.bias_along + at, mask));
  if (f.bias_across) value = Vector::add(value, Vector::all(f.bias_across[line]));
  switch (f.activation) {
    case Activation::relu: value = Vector::max(Vector::zero(), value); break;  // NaN stays
    case Activation::relu_grad:
      value = Vector::keep_positive(
          value, Vector::load(f.multiplier + line * f.multiplier_line + at, mask));
      break;
    default: break;  // none; GELU follows on the stored tile
  }
  return value;
}

/// One tile: rows x (vectors * width), `columns` of them real.
struct Tile {
  std::int64_t k;
  const float* a;
  std::int64_t a_m, a_k;
  const float* b;
  std::int64_t b_k;
  std::int64_t columns;
  Finish to;
};

/// rows_mode: A's elements of one row are neighbours (a_k = 1); else those of one column (a_m = 1).
template <int rows, int vectors, bool rows_mode, bool transposed>
void tile(const Tile& t) {
  using V = Vector::Type;
  constexpr int width = Vector::width;
  V acc[rows][vectors];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) acc[i][j] = Vector::zero();
  }
  const float* b = t.b;
  const std::int64_t b_k = t.b_k;
  if (t.to.accumulate) {  // what will be added to is on its way meanwhile
    constexpr int lines = transposed ? vectors * width : rows;
    constexpr int pieces = transposed ? 1 : vectors;
#pragma GCC unroll 32
    for (int i = 0; i < lines; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < pieces; ++j) {
        __builtin_prefetch(t.to.c + i * t.to.c_line + j * width, 1);
      }
    }
  }
  if constexpr (rows_mode) {
    // Five base pointers reach 15 rows with the index registers s and 3 s.
    const std::int64_t s = t.a_m, s2 = 2 * s;
    const float* r0 = t.a;
    const float* r3 = t.a + 3 * s;
    const float* r6 = t.a + 6 * s;
    const float* r9 = t.a + 9 * s;
    const float* r12 = t.a + 12 * s;
    for (std::int64_t p = 0; p < t.k; ++p) {
      V x[vectors];
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) {
        x[j] = Vector::load(b + j * width);
        __builtin_prefetch(b + prefetch_steps * b_k + j * width);
      }
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) {
        const float* base = i < 3 ? r0 : i < 6 ? r3 : i < 9 ? r6 : i < 12 ? r9 : r12;
        const V y = Vector::all(base[p + (i % 3 == 0 ? 0 : i % 3 == 1 ? s : s2)]);
#pragma GCC unroll 2
        for (int j = 0; j < vectors; ++j) acc[i][j] = Vector::fma(y, x[j], acc[i][j]);
      }
      b += b_k;
    }
  } else {
    const float* a = t.a;
    const std::int64_t a_k = t.a_k;
    for (std::int64_t p = 0; p < t.k; ++p) {
      V x[vectors];
      __builtin_prefetch(a + prefetch_steps * a_k);
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) {
        x[j] = Vector::load(b + j * width);
        __builtin_prefetch(b + prefetch_steps * b_k + j * width);
      }
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) {
        const V y = Vector::all(a[i]);
#pragma GCC unroll 2
        for (int j = 0; j < vectors; ++j) acc[i][j] = Vector::fma(y, x[j], acc[i][j]);
      }
      a += a_k;
      b += b_k;
    }
  }

  if constexpr (!transposed) {
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) {
      const auto mask = Vector::first(t.columns - j * width);
      float* c = t.to.c + j * width;
      if (t.to.plain()) {
        const V alpha = Vector::all(t.to.alpha);
        if (t.to.accumulate) {
#pragma GCC unroll 16
          for (int i = 0; i < rows; ++i, c += t.to.c_line) {
            Vector::store(c, Vector::fma(alpha, acc[i][j], Vector::load(c, mask)), mask);
          }
        } else {
#pragma GCC unroll 16
          for (int i = 0; i < rows; ++i, c += t.to.c_line) {
            Vector::store(c, Vector::mul(alpha, acc[i][j]), mask);
          }
        }
      } else {
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i, c += t.to.c_line) {
          Vector::store(c, finish(t.to, acc[i][j], c, i, j * width, mask), mask);
        }
      }
    }
  } else {
    // The tile's columns become lines of `rows` elements.
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) {
#pragma GCC unroll 2
      for (int first = 0; first < rows; first += width) {
        V square[width];
#pragma GCC unroll 16
        for (int i = 0; i < width; ++i) {
          square[i] = first + i < rows ? acc[first + i < rows ? first + i : 0][j] : Vector::zero();
        }
        Vector::transpose(square);
        const auto mask = Vector::first(rows - first);
        const std::int64_t lines = t.columns - j * width;
#pragma GCC unroll 16
        for (int i = 0; i < width; ++i) {
          if (i >= lines) break;
          const std::int64_t line = j * width + i;
          float* c = t.to.c + line * t.to.c_line + first;
          Vector::store(c, finish(t.to, square[i], c, line, first, mask), mask);
        }
      }
    }
  }
}

using TileFunction = void (*)(const Tile&);

template <int vectors, bool rows_mode, bool transposed, int... rows>
constexpr std::array<TileFunction, sizeof...(rows)> tiles_of(std::integer_sequence<int, rows...>) {
  return {&tile<rows + 1, vectors, rows_mode, transposed>...};
}

template <bool rows_mode, bool transposed>
TileFunction tile_function(std::int64_t rows, std::int64_t vectors) {
  static constexpr auto one =
      tiles_of<1, rows_mode, transposed>(std::make_integer_sequence<int, max_rows>{});
  static constexpr auto two =
      tiles_of<2, rows_mode, transposed>(std::make_integer_sequence<int, max_rows>{});
  return (vectors == 1 ? one : two)[static_cast<std::size_t>(rows - 1)];
}

TileFunction tile_function(std::int64_t rows, std::int64_t vectors, bool rows_mode, bool transposed) {
  if (rows_mode) {
    return transposed ? tile_function<true, true>(rows, vectors)
                      : tile_function<true, false>(rows, vectors);
  }
  return transposed ? tile_function<false, true>(rows, vectors)
                    : tile_function<false, false>(rows, vectors);
}

/// GELU on a tile that was just stored: `lines` of `count` elements.
void apply_gelu(const Finish& f, std::int64_t lines, std::int64_t count) {
  for (std::int64_t line = 0; line < lines; ++line) {
    for (std::int64_t i = 0; i < count; i += Vector::width) {
      float* c = f.c + line * f.c_line + i;
      const auto mask = Vector::first(count - i);
      const auto x = Vector::load(c, mask);
      Vector::store(c, f.activation == Activation::gelu ? gelu_erf(x) : gelu_tanh(x), mask);
    }
  }
}

constexpr std::int64_t step_of(std::int64_t wide) {
  return (wide + Vector::width - 1) / Vector::width * Vector::width;
}

/// A panel holds `wide` neighbours of one step of k next to each other: element (i, p) of panel j
/// is from[(j * wide + i) * stride_i + p * stride_k], at to[j * distance() + p * step() + i]. Steps
/// are whole vectors; lanes past `count` are zero, others past `wide` are anything.
struct Packing {
  const float* from;
  std::int64_t stride_i, stride_k;
  std::int64_t count, k, wide;

  std::int64_t step() const { return step_of(wide); }
  std::int64_t distance() const { return panel_distance(k, step()); }
};

/// One panel whose elements of one i are neighbours: squares are transposed in registers.
void pack_by_transposing(float* to, const Packing& x, std::int64_t begin) {
  constexpr int width = Vector::width;
  const std::int64_t count = std::min(x.wide, x.count - begin);
  for (std::int64_t i = 0; i < x.wide; i += width) {
    const std::int64_t rows = std::clamp<std::int64_t>(count - i, 0, width);
    const float* from = x.from + (begin + i) * x.stride_i;
    for (std::int64_t p = 0; p < x.k; p += width) {
      const auto mask = Vector::first(x.k - p);
      Vector::Type square[width];
      if (rows == width) {
#pragma GCC unroll 16
        for (int r = 0; r < width; ++r) square[r] = Vector::load(from + r * x.stride_i + p, mask);
      } else {
#pragma GCC unroll 16
        for (int r = 0; r < width; ++r) {
          square[r] = r < rows ? Vector::load(from + r * x.stride_i + p, mask) : Vector::zero();
        }
      }
      Vector::transpose(square);
      const std::int64_t lines = std::min<std::int64_t>(width, x.k - p);
#pragma GCC unroll 16
      for (int r = 0; r < width; ++r) {
        if (r < lines) Vector::store(to + (p + r) * x.step() + i, square[r]);
      }
    }
  }
}

/// Panels whose elements of one step are neighbours: long pieces of a line go to several panels.
constexpr std::int64_t copy_ahead = 6;  // lines
template <int vectors>
void pack_by_copying(float* to, const Packing& x) {
  constexpr int width = Vector::width, step = vectors * width;
  // Panels whose whole steps lie inside the line are read without a mask.
  const std::int64_t plain = x.count < step ? 0 : (x.count - step) / x.wide + 1;
  const std::int64_t distance = x.distance();
  for (std::int64_t p = 0; p < x.k; ++p) {
    const float* from = x.from + p * x.stride_k;
    float* at = to + p * step;
    for (std::int64_t j = 0; j < plain; ++j, from += x.wide, at += distance) {
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        __builtin_prefetch(from + v * width + copy_ahead * x.stride_k);
        Vector::store(at + v * width, Vector::load(from + v * width));
      }
    }
    for (std::int64_t i = plain * x.wide; i < x.count; i += x.wide, from += x.wide, at += distance) {
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        const auto mask = Vector::first(x.count - i - v * width);
        Vector::store(at + v * width, Vector::load(from + v * width, mask));
      }
    }
  }
}

void pack(float* to, const Packing& x) {
  if (x.stride_i == 1) {
    if (x.wide > Vector::width) {
      pack_by_copying<2>(to, x);
    } else {
      pack_by_copying<1>(to, x);
    }
  } else if (x.stride_k == 1) {
    for (std::int64_t i = 0; i < x.count; i += x.wide, to += x.distance()) {
      pack_by_transposing(to, x, i);
    }
  } else {
    for (std::int64_t j = 0; j < x.count; j += x.wide, to += x.distance()) {
      for (std::int64_t p = 0; p < x.k; ++p) {
        for (std::int64_t i = 0; i < x.wide; ++i) {
          to[p * x.step() + i] =
              j + i < x.count ? x.from[(j + i) * x.stride_i + p * x.stride_k] : 0.0f;
        }
      }
    }
  }
}

void gemm_part(const GemmPart& part) {
  constexpr std::int64_t width = Vector::width, panel = 2 * width;
  const GemmPlan& plan = *part.plan;
  const GemmShape& s = plan.shape;
  const GemmArguments& x = part.arguments;
  const bool transposed = s.c_n != 1;
  const std::int64_t c_line = transposed ? s.c_n : s.c_m;
  const std::int64_t multiplier_line = transposed ? s.multiplier_n : s.multiplier_m;
  const std::int64_t bias_along = transposed ? s.bias_m : s.bias_n;
  // Tiles of equal height, but for the last.
  const std::int64_t tiles = std::max<std::int64_t>(1, (part.m + max_rows - 1) / max_rows);
  const std::int64_t height = (part.m + tiles - 1) / tiles;
  float* const a_panels = part.workspace;
  float* const b_panels = part.workspace + (plan.pack_a ? panel_distance(plan.k_block, step_of(max_rows)) * plan.m_block : 0);

  for (std::int64_t k0 = 0; k0 < s.k || k0 == 0; k0 += plan.k_block) {
    const std::int64_t k = std::min(plan.k_block, s.k - k0);
    const bool last = k0 + plan.k_block >= s.k;
    const std::int64_t a_distance = panel_distance(k, step_of(height));
    for (std::int64_t m_at = 0; m_at < part.m; m_at += plan.m_block * height) {
      const std::int64_t m_end = std::min(m_at + plan.m_block * height, part.m);
      if (plan.pack_a) {
        pack(a_panels, {x.a + m_at * s.a_m + k0 * s.a_k, s.a_m, s.a_k, m_end - m_at, k, height});
      }
      for (std::int64_t n0 = 0; n0 < part.n; n0 += plan.n_block) {
        const std::int64_t n = std::min(plan.n_block, part.n - n0);
        const std::int64_t b_distance = panel_distance(k, panel);
        const float* const b_block = x.b + k0 * s.b_k + n0 * s.b_n;
        // A last panel that cannot be read in place is packed in any case, as narrow as it may be.
        const std::int64_t whole = n / panel * panel, rest = n - whole;
        float* const rest_panel = plan.pack_b ? b_panels + n / panel * b_distance : b_panels;
        if (plan.pack_b && whole > 0) {
          pack(b_panels, {b_block, s.b_n, s.b_k, whole, k, panel});
        }
        if (rest > 0) {
          pack(rest_panel,
               {b_block + whole * s.b_n, s.b_n, s.b_k, rest, k, rest > width ? panel : width});
        }
        for (std::int64_t m0 = m_at; m0 < m_end; m0 += height) {
          const std::int64_t rows = std::min(height, m_end - m0);
          Tile t;
          t.k = k;
          t.a = plan.pack_a ? a_panels + (m0 - m_at) / height * a_distance : x.a + m0 * s.a_m + k0 * s.a_k;
          t.a_m = plan.pack_a ? 1 : s.a_m;
          t.a_k = plan.pack_a ? step_of(height) : s.a_k;
          const bool rows_mode = t.a_m != 1;
          t.to.c_line = c_line;
          t.to.multiplier_line = multiplier_line;
          t.to.alpha = x.alpha;
          t.to.accumulate = x.accumulate || k0 > 0;
          t.to.activation = last ? x.activation : Activation::none;
          for (std::int64_t j = 0; j < n; j += panel) {
            const std::int64_t columns = std::min(panel, n - j);
            const std::int64_t vectors = columns > width ? 2 : 1;
            const std::int64_t n_at = n0 + j;
            const bool in_place = j < whole && !plan.pack_b;
            t.b = in_place ? b_block + j : j < whole ? b_panels + j / panel * b_distance : rest_panel;
            t.b_k = in_place ? s.b_k : vectors * width;
            t.columns = columns;
            t.to.c = x.c + m0 * s.c_m + n_at * s.c_n;
            const std::int64_t along = transposed ? m0 : n_at, across = transposed ? n_at : m0;
            const bool bias = last && x.bias != nullptr;
            t.to.bias_along = bias && bias_along != 0 ? x.bias + along : nullptr;
            t.to.bias_across = bias && bias_along == 0 ? x.bias + across : nullptr;
            t.to.multiplier =
                x.multiplier ? x.multiplier + m0 * s.multiplier_m + n_at * s.multiplier_n : nullptr;
            tile_function(rows, vectors, rows_mode, transposed)(t);
            if (t.to.activation == Activation::gelu ||
                t.to.activation == Activation::gelu_tanh) {
              apply_gelu(t.to, transposed ? columns : rows, transposed ? rows : columns);
            }
          }
        }
      }
    }
  }
}
