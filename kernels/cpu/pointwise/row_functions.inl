// Reductions, softmax, layer normalisation and attention over one row. Included by
// vector_functions_*.cpp.

// Sums in four vectors over blocks of 1,024 elements, blocks in double.
template <class F>
TANDEM_INLINE double sum_of(std::int64_t n, F term) {
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += 1024) {
    const std::int64_t end = begin + 1024 < n ? begin + 1024 : n;
    V s0{}, s1{}, s2{}, s3{};
    std::int64_t i = begin;
    for (; i + 4 * width <= end; i += 4 * width) {
      s0 += term(i, width);
      s1 += term(i + width, width);
      s2 += term(i + 2 * width, width);
      s3 += term(i + 3 * width, width);
    }
    for (; i + width <= end; i += width) s0 += term(i, width);
    if (i < end) s1 += term(i, static_cast<int>(end - i));
    total += sum_lanes((s0 + s1) + (s2 + s3));
  }
  return total;
}

TANDEM_INLINE V load_some(const float* p, int n) { return n == width ? load(p) : load_part(p, n); }

double row_sum(const float* x, std::int64_t n) {
  return sum_of(n, [=](std::int64_t i, int m) TANDEM_LAMBDA { return load_some(x + i, m); });
}

// The larger of both; NaN wins.
TANDEM_INLINE V raise(V largest, V x) { return (x > largest) | (x != x) ? x : largest; }

float row_maximum(const float* x, std::int64_t n) {
  float largest = -__builtin_inff();
  std::int64_t i = 0;
  if (n >= width) {
    V m = load(x);
    for (i = width; i + width <= n; i += width) m = raise(m, load(x + i));
    largest = max_lanes(m);
  }
  for (; i < n; ++i) largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
  return largest;
}

void add_rows(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t n, float* sum) {
  std::int64_t i = 0;
  for (; i + 4 * width <= n; i += 4 * width) {
    V s0 = load(sum + i), s1 = load(sum + i + width), s2 = load(sum + i + 2 * width),
      s3 = load(sum + i + 3 * width);
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* p = x + r * stride + i;
      s0 += load(p);
      s1 += load(p + width);
      s2 += load(p + 2 * width);
      s3 += load(p + 3 * width);
    }
    store(sum + i, s0);
    store(sum + i + width, s1);
    store(sum + i + 2 * width, s2);
    store(sum + i + 3 * width, s3);
  }
  for (; i + width <= n; i += width) {
    V s = load(sum + i);
    for (std::int64_t r = 0; r < rows; ++r) s += load(x + r * stride + i);
    store(sum + i, s);
  }
  for (; i < n; ++i) {
    float s = sum[i];
    for (std::int64_t r = 0; r < rows; ++r) s += x[r * stride + i];
    sum[i] = s;
  }
}

void max_rows(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t n,
              float* largest) {
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    V m = load(largest + i);
    for (std::int64_t r = 0; r < rows; ++r) m = raise(m, load(x + r * stride + i));
    store(largest + i, m);
  }
  for (; i < n; ++i) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const float v = x[r * stride + i];
      if (v > largest[i] || v != v) largest[i] = v;
    }
  }
}

void flush(float* sum, double* total, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    total[i] += static_cast<double>(sum[i]);
    sum[i] = 0;
  }
}

TANDEM_INLINE float log_one(float x) {
  float lanes[width];
  store(lanes, log_of(all(x)));
  return lanes[0];
}

// Lanes past the end of a row count as -infinity.
TANDEM_INLINE V load_or_nothing(const float* p, int n) {
  if (n == width) return load(p);
  float buffer[width];
  for (int i = 0; i < width; ++i) buffer[i] = i < n ? p[i] : -__builtin_inff();
  return load(buffer);
}

// sum(exp(x - shift)); also written to y where it is not null.
TANDEM_INLINE double exp_sum(const float* x, float shift, float* y, std::int64_t n) {
  return sum_of(n, [=](std::int64_t i, int m) TANDEM_LAMBDA {
    const V e = exp_of(load_or_nothing(x + i, m) - shift);
    if (y != nullptr) {
      if (m == width)
        store(y + i, e);
      else
        store_part(y + i, e, m);
    }
    return m == width ? e : load_part(reinterpret_cast<const float*>(&e), m);
  });
}

float row_log_sum_exp(const float* x, std::int64_t n) {
  const float largest = row_maximum(x, n);
  if (largest == -__builtin_inff()) return largest;
  return largest + log_one(static_cast<float>(exp_sum(x, largest, nullptr, n)));
}

void row_softmax(const float* x, float* y, std::int64_t n) {
  const float largest = row_maximum(x, n);
  const float factor = static_cast<float>(1.0 / exp_sum(x, largest, y, n));
  map1({y, nullptr, nullptr, y, n, 0, 0}, [=](V a) TANDEM_LAMBDA { return a * factor; });
}

void row_log_softmax(const float* x, float* y, std::int64_t n) {
  const float largest = row_maximum(x, n);
  const float log_sum = log_one(static_cast<float>(exp_sum(x, largest, nullptr, n)));
  map1({x, nullptr, nullptr, y, n, 0, 0},
       [=](V a) TANDEM_LAMBDA { return (a - largest) - log_sum; });
}

// dx = y (dy - sum(y dy))
void row_softmax_grad(const float* dy, const float* y, float* dx, std::int64_t n) {
  const float dot = static_cast<float>(sum_of(n, [=](std::int64_t i, int m) TANDEM_LAMBDA {
    return load_some(dy + i, m) * load_some(y + i, m);
  }));
  map2({dy, y, nullptr, dx, n, 0, 0}, [=](V a, V b) TANDEM_LAMBDA { return b * (a - dot); });
}

// dx = dy - exp(y) sum(dy)
void row_log_softmax_grad(const float* dy, const float* y, float* dx, std::int64_t n) {
  const float total = static_cast<float>(row_sum(dy, n));
  map2({dy, y, nullptr, dx, n, 0, 0},
       [=](V a, V b) TANDEM_LAMBDA { return a - exp_of(b) * total; });
}

void row_scaled_exp(const float* x, float shift, float factor, float offset, float* y,
                    std::int64_t n) {
  map1({x, nullptr, nullptr, y, n, 0, 0},
       [=](V a) TANDEM_LAMBDA { return exp_of(a - shift) * factor + offset; });
}

void row_layer_norm(const float* x, const float* scale, const float* bias, float* y, std::int64_t n,
                    float epsilon, float* mean, float* rstd) {
  const double m = row_sum(x, n) / static_cast<double>(n);
  const float center = static_cast<float>(m);
  double square = sum_of(n, [=](std::int64_t i, int k) TANDEM_LAMBDA {
    const V d = load_some(x + i, k) - center;
    const V s = d * d;
    return k == width ? s : load_part(reinterpret_cast<const float*>(&s), k);
  });
  const float r = static_cast<float>(
      1.0 / __builtin_sqrt(square / static_cast<double>(n) + static_cast<double>(epsilon)));
  *mean = center;
  *rstd = r;
  if (bias != nullptr) {
    // the centre is subtracted first: x r - center r would cancel where the mean is large
    std::int64_t i = 0;
    for (; i + width <= n; i += width) {
      store(y + i, (load(x + i) - center) * r * load(scale + i) + load(bias + i));
    }
    for (; i < n; ++i) y[i] = (x[i] - center) * r * scale[i] + bias[i];
  } else {
    map2({x, scale, nullptr, y, n, 0, 0},
         [=](V a, V b) TANDEM_LAMBDA { return (a - center) * r * b; });
  }
}

// n^ = (x - mean) rstd, g = dy scale: dx = rstd (g - mean(g) - n^ mean(g n^))
void row_layer_norm_grad(const float* dy, const float* x, const float* scale, float mean,
                         float rstd, float* dx, std::int64_t n, float* dscale, float* dbias) {
  double total = 0, product = 0;
  for (std::int64_t begin = 0; begin < n; begin += 1024) {
    const std::int64_t end = begin + 1024 < n ? begin + 1024 : n;
    V s{}, p{}, s2{}, p2{};
    std::int64_t i = begin;
    for (; i + 2 * width <= end; i += 2 * width) {
      const V d = load(dy + i), d2 = load(dy + i + width);
      const V h = (load(x + i) - mean) * rstd, h2 = (load(x + i + width) - mean) * rstd;
      const V g = d * load(scale + i), g2 = d2 * load(scale + i + width);
      s += g;
      p += g * h;
      s2 += g2;
      p2 += g2 * h2;
      if (dscale != nullptr) {
        store(dscale + i, load(dscale + i) + d * h);
        store(dscale + i + width, load(dscale + i + width) + d2 * h2);
      }
      if (dbias != nullptr) {
        store(dbias + i, load(dbias + i) + d);
        store(dbias + i + width, load(dbias + i + width) + d2);
      }
    }
    float rest_s = 0, rest_p = 0;
    for (; i < end; ++i) {
      const float h = (x[i] - mean) * rstd, g = dy[i] * scale[i];
      rest_s += g;
      rest_p += g * h;
      if (dscale != nullptr) dscale[i] += dy[i] * h;
      if (dbias != nullptr) dbias[i] += dy[i];
    }
    total += static_cast<double>(sum_lanes(s + s2)) + static_cast<double>(rest_s);
    product += static_cast<double>(sum_lanes(p + p2)) + static_cast<double>(rest_p);
  }
  if (dx == nullptr) return;
  const float mean_g = static_cast<float>(total / static_cast<double>(n));
  const float mean_gh = static_cast<float>(product / static_cast<double>(n));
  map3({dy, x, scale, dx, n, 0, 0}, [=](V d, V v, V w) TANDEM_LAMBDA {
    return rstd * (d * w - mean_g - (v - mean) * rstd * mean_gh);
  });
}

float row_online_softmax(float* x, const float* mask, std::int64_t n, float* largest) {
  if (mask != nullptr)
    map2({x, mask, nullptr, x, n, 0, 0}, [](V a, V b) TANDEM_LAMBDA { return a + b; });
  const float here = row_maximum(x, n);
  if (here > *largest || here != here) *largest = here;
  if (*largest == -__builtin_inff()) {
    for (std::int64_t i = 0; i < n; ++i) x[i] = 0;
    return 0;
  }
  return static_cast<float>(exp_sum(x, *largest, x, n));
}

void row_probabilities(float* x, const float* mask, float lse, std::int64_t n) {
  if (lse == -__builtin_inff()) {
    for (std::int64_t i = 0; i < n; ++i) x[i] = 0;
  } else if (mask != nullptr) {
    map2({x, mask, nullptr, x, n, 0, 0},
         [=](V a, V b) TANDEM_LAMBDA { return exp_of(a + b - lse); });
  } else {
    map1({x, nullptr, nullptr, x, n, 0, 0}, [=](V a) TANDEM_LAMBDA { return exp_of(a - lse); });
  }
}

void row_score_grad(const float* p, float* dp, float delta, float factor, std::int64_t n) {
  map2({p, dp, nullptr, dp, n, 0, 0},
       [=](V a, V b) TANDEM_LAMBDA { return a * (b - delta) * factor; });
}

float row_dot(const float* a, const float* b, std::int64_t n) {
  return static_cast<float>(sum_of(n, [=](std::int64_t i, int m) TANDEM_LAMBDA {
    return load_some(a + i, m) * load_some(b + i, m);
  }));
}

void row_scale(float* x, float factor, std::int64_t n) {
  map1({x, nullptr, nullptr, x, n, 0, 0}, [=](V a) TANDEM_LAMBDA { return a * factor; });
}
