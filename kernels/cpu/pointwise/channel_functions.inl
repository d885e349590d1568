// Statistics and affine maps per channel, for batch normalisation. Included by
// vector_functions_*.cpp.

// Two sums per channel over rows with the channels innermost; `terms(i, r)` gives both terms of a
// vector, `term(i, r)` of one number.
template <class Vectors, class Numbers>
TANDEM_INLINE void two_sums(std::int64_t rows, std::int64_t n, float* first, float* second,
                            Vectors vectors, Numbers numbers) {
  std::int64_t i = 0;
  for (; i + 2 * width <= n; i += 2 * width) {
    V a0 = load(first + i), a1 = load(first + i + width);
    V b0 = load(second + i), b1 = load(second + i + width);
    for (std::int64_t r = 0; r < rows; ++r) {
      vectors(i, r, a0, b0);
      vectors(i + width, r, a1, b1);
    }
    store(first + i, a0);
    store(first + i + width, a1);
    store(second + i, b0);
    store(second + i + width, b1);
  }
  for (; i + width <= n; i += width) {
    V a = load(first + i), b = load(second + i);
    for (std::int64_t r = 0; r < rows; ++r) vectors(i, r, a, b);
    store(first + i, a);
    store(second + i, b);
  }
  for (; i < n; ++i) {
    for (std::int64_t r = 0; r < rows; ++r) numbers(i, r, first[i], second[i]);
  }
}

void moments_rows(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t n,
                  const float* shift, float* sums, float* squares) {
  two_sums(
      rows, n, sums, squares,
      [=](std::int64_t i, std::int64_t r, V& s, V& q) TANDEM_LAMBDA {
        const V d = load(x + r * stride + i) - load(shift + i);
        s += d;
        q += d * d;
      },
      [=](std::int64_t i, std::int64_t r, float& s, float& q) TANDEM_LAMBDA {
        const float d = x[r * stride + i] - shift[i];
        s += d;
        q += d * d;
      });
}

void grad_sums_rows(const float* dy, const float* x, std::int64_t rows, std::int64_t stride,
                    std::int64_t n, const float* mean, float* sums, float* products) {
  two_sums(
      rows, n, sums, products,
      [=](std::int64_t i, std::int64_t r, V& s, V& q) TANDEM_LAMBDA {
        const V d = load(dy + r * stride + i);
        s += d;
        q += d * (load(x + r * stride + i) - load(mean + i));
      },
      [=](std::int64_t i, std::int64_t r, float& s, float& q) TANDEM_LAMBDA {
        const float d = dy[r * stride + i];
        s += d;
        q += d * (x[r * stride + i] - mean[i]);
      });
}

// Two sums over one plane; each term gets the place and fills both.
template <class Vectors, class Numbers>
TANDEM_INLINE void two_plane_sums(std::int64_t n, double* first, double* second, Vectors vectors,
                                  Numbers numbers) {
  for (std::int64_t begin = 0; begin < n; begin += 1024) {
    const std::int64_t end = begin + 1024 < n ? begin + 1024 : n;
    V a0{}, a1{}, b0{}, b1{};
    std::int64_t i = begin;
    for (; i + 2 * width <= end; i += 2 * width) {
      vectors(i, a0, b0);
      vectors(i + width, a1, b1);
    }
    for (; i + width <= end; i += width) vectors(i, a0, b0);
    float a = 0, b = 0;
    for (; i < end; ++i) numbers(i, a, b);
    *first += static_cast<double>(sum_lanes(a0 + a1)) + static_cast<double>(a);
    *second += static_cast<double>(sum_lanes(b0 + b1)) + static_cast<double>(b);
  }
}

void moments_plane(const float* x, std::int64_t n, float shift, double* sum, double* square) {
  two_plane_sums(
      n, sum, square,
      [=](std::int64_t i, V& s, V& q) TANDEM_LAMBDA {
        const V d = load(x + i) - shift;
        s += d;
        q += d * d;
      },
      [=](std::int64_t i, float& s, float& q) TANDEM_LAMBDA {
        const float d = x[i] - shift;
        s += d;
        q += d * d;
      });
}

void grad_sums_plane(const float* dy, const float* x, std::int64_t n, float mean, double* sum,
                     double* product) {
  two_plane_sums(
      n, sum, product,
      [=](std::int64_t i, V& s, V& q) TANDEM_LAMBDA {
        const V d = load(dy + i);
        s += d;
        q += d * (load(x + i) - mean);
      },
      [=](std::int64_t i, float& s, float& q) TANDEM_LAMBDA {
        s += dy[i];
        q += dy[i] * (x[i] - mean);
      });
}

void affine_rows(const float* x, float* y, std::int64_t rows, std::int64_t x_stride,
                 std::int64_t y_stride, std::int64_t n, const float* a, const float* b) {
  for (std::int64_t r = 0; r < rows; ++r) {
    map3({x + r * x_stride, a, b, y + r * y_stride, n, 0, 0},
         [](V v, V f, V g) TANDEM_LAMBDA { return v * f + g; });
  }
}

void affine2_rows(const float* dy, const float* x, float* dx, std::int64_t rows,
                  std::int64_t stride, std::int64_t n, const float* a, const float* b,
                  const float* d) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float *g = dy + r * stride, *v = x + r * stride;
    float* out = dx + r * stride;
    std::int64_t i = 0;
    for (; i + width <= n; i += width) {
      store(out + i, load(g + i) * load(a + i) + (load(v + i) * load(b + i) + load(d + i)));
    }
    for (; i < n; ++i) out[i] = g[i] * a[i] + (v[i] * b[i] + d[i]);
  }
}

void affine2_plane(const float* dy, const float* x, float* dx, std::int64_t n, float a, float b,
                   float d) {
  map2({dy, x, nullptr, dx, n, 0, 0}, [=](V g, V v) TANDEM_LAMBDA { return g * a + (v * b + d); });
}
