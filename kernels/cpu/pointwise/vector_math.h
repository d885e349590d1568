// Vectors of floats and their functions exp, log, tanh, erf and those made of them, for one
// instruction set. Included inside an ISA-named namespace after TANDEM_VECTOR_WIDTH was defined;
// without std templates, whose instances would be shared with code for other processors. A source
// file does so for one ISA.
#pragma once

constexpr int width = TANDEM_VECTOR_WIDTH;
#define TANDEM_INLINE inline __attribute__((always_inline))

using V = float __attribute__((vector_size(4 * TANDEM_VECTOR_WIDTH)));
using Int = std::int32_t __attribute__((vector_size(4 * TANDEM_VECTOR_WIDTH)));
using Unaligned =
    float __attribute__((vector_size(4 * TANDEM_VECTOR_WIDTH), aligned(4), may_alias));

TANDEM_INLINE V load(const float* p) { return *reinterpret_cast<const Unaligned*>(p); }
TANDEM_INLINE void store(float* p, V x) { *reinterpret_cast<Unaligned*>(p) = x; }
TANDEM_INLINE V all(float x) { return x - V{}; }
TANDEM_INLINE Int all_int(std::int32_t x) { return x - Int{}; }

/// The first n lanes (0 < n < width), the others zero.
TANDEM_INLINE V load_part(const float* p, std::int64_t n) {
  float buffer[width] = {};
  for (std::int64_t i = 0; i < n; ++i) buffer[i] = p[i];
  return load(buffer);
}
TANDEM_INLINE void store_part(float* p, V x, std::int64_t n) {
  float buffer[width];
  store(buffer, x);
  for (std::int64_t i = 0; i < n; ++i) p[i] = buffer[i];
}

TANDEM_INLINE V min_of(V a, V b) { return a < b ? a : b; }
TANDEM_INLINE V abs_of(V x) {
  return reinterpret_cast<V>(reinterpret_cast<Int>(x) & all_int(0x7fffffff));
}
TANDEM_INLINE V sign_bit(V x) {
  return reinterpret_cast<V>(reinterpret_cast<Int>(x) &
                             all_int(static_cast<std::int32_t>(0x80000000u)));
}
TANDEM_INLINE V or_of(V a, V b) {
  return reinterpret_cast<V>(reinterpret_cast<Int>(a) | reinterpret_cast<Int>(b));
}
TANDEM_INLINE V number_of(Int mask) {
  return reinterpret_cast<V>(mask & all_int(0x3f800000));
}  // 1 or 0

TANDEM_INLINE float sum_lanes(V x) {
  float lanes[width];
  store(lanes, x);
  for (int half = width / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}
TANDEM_INLINE float max_lanes(V x) {
  float lanes[width];
  store(lanes, x);
  float largest = lanes[0];
  for (int i = 1; i < width; ++i) {
    largest = lanes[i] > largest || lanes[i] != lanes[i] ? lanes[i] : largest;
  }
  return largest;
}

// at_least and at_most keep NaN. times_power is x 2^n for a whole n, with results beyond the ends
// of float32 infinity and 0: in two halves where no instruction does it.
#if TANDEM_VECTOR_WIDTH == 16
constexpr int as_rounded_now = 4;  // _MM_FROUND_CUR_DIRECTION
TANDEM_INLINE V at_least(V x, float low) {
  return __builtin_ia32_maxps512_mask(all(low), x, V{}, -1, as_rounded_now);
}
TANDEM_INLINE V at_most(V x, float high) {
  return __builtin_ia32_minps512_mask(all(high), x, V{}, -1, as_rounded_now);
}
TANDEM_INLINE V times_power(V x, V n) {
  return __builtin_ia32_scalefps512_mask(x, n, V{}, -1, as_rounded_now);
}
#else
#if TANDEM_VECTOR_WIDTH == 8
TANDEM_INLINE V at_least(V x, float low) { return __builtin_ia32_maxps256(all(low), x); }
TANDEM_INLINE V at_most(V x, float high) { return __builtin_ia32_minps256(all(high), x); }
#else
TANDEM_INLINE V at_least(V x, float low) { return x < low ? all(low) : x; }
TANDEM_INLINE V at_most(V x, float high) { return x > high ? all(high) : x; }
#endif
TANDEM_INLINE V times_power(V x, V n) {
  const Int whole = __builtin_convertvector(n, Int);
  const Int half = whole >> 1;
  return x * reinterpret_cast<V>((half + 127) << 23) *
         reinterpret_cast<V>((whole - half + 127) << 23);
}
#endif

// e^x = (less_one + 1) 2^n.
struct ExpParts {
  V less_one, n;
};

// x = n log 2 + r, e^r by a polynomial of degree 6.
TANDEM_INLINE ExpParts exp_parts(V x) {
  x = at_most(at_least(x, -104.0f), 89.0f);
  const V magic = all(12582912.0f);  // 1.5 x 2^23: adding it rounds to an integer
  const V n = (x * 1.44269504088896341f + magic) - magic;
  V r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  V p = all(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return {p * (r * r) + r, n};
}

TANDEM_INLINE V exp_of(V x) {
  const ExpParts e = exp_parts(x);
  return times_power(e.less_one + 1.0f, e.n);
}

// With s the power of two: s (e^r - 1) + (s - 1), and as e^x - 1 where s - 1 is s.
TANDEM_INLINE V expm1_of(V x) {
  const V zero = x == 0.0f ? x : V{};  // 0 and -0 stay
  const ExpParts e = exp_parts(x);
  const V small = times_power(e.less_one, e.n) + (times_power(all(1.0f), e.n) - 1.0f);
  const V large = times_power(e.less_one + 1.0f, e.n);
  return or_of(x > 30.0f ? large : small, zero);
}

TANDEM_INLINE V log_of(V x) {
  const Int tiny = x < 1.17549435e-38f;
  V z = tiny ? x * 8388608.0f : x;
  const Int bits = reinterpret_cast<Int>(z);
  Int exponent = ((bits >> 23) & 0xff) - 126;
  V m = reinterpret_cast<V>((bits & 0x007fffff) | 0x3f000000);  // 0.5 to 1
  const Int low = m < 0.707106781186547524f;
  exponent = exponent + low;  // -1 where low
  m = low ? m + m - 1.0f : m - 1.0f;
  V e = __builtin_convertvector(exponent, V);
  e = tiny ? e - 23.0f : e;
  const V square = m * m;
  V p = all(7.0376836292e-2f);
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  p = p * m * square;
  p = p - e * 2.12194440e-4f - square * 0.5f;
  V y = (m + p) + e * 0.693359375f;
  const float infinity = __builtin_inff();
  y = x == 0.0f ? all(-infinity) : y;
  y = x == infinity ? all(infinity) : y;
  return x >= 0.0f ? y : all(__builtin_nanf(""));
}

TANDEM_INLINE V tanh_of(V x) {
  const V magnitude = abs_of(x);
  const V z = x * x;
  V p = all(-5.70498872745e-3f);
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const V near = p * z * x + x;
  const V far = 1.0f - 2.0f / (exp_of(magnitude + magnitude) + 1.0f);
  return magnitude < 0.625f ? near : or_of(far, sign_bit(x));
}

TANDEM_INLINE V sigmoid_of(V x) { return 1.0f / (1.0f + exp_of(-x)); }

// x times a ratio of polynomials of x^2; beyond 4 the result rounds to 1.
TANDEM_INLINE V erf_of(V x) {
  const V y = x > 4.0f ? all(4.0f) : x < -4.0f ? all(-4.0f) : x;
  const V z = y * y;
  V p = all(-2.72614225801306e-10f);
  p = p * z + 2.77068142495902e-08f;
  p = p * z - 2.10102402082508e-06f;
  p = p * z - 5.69250639462346e-05f;
  p = p * z - 7.34990630326855e-04f;
  p = p * z - 2.95459980854025e-03f;
  p = p * z - 1.60960333262415e-02f;
  V q = all(-1.45660718464996e-05f);
  q = q * z - 2.13374055278905e-04f;
  q = q * z - 1.68282697438203e-03f;
  q = q * z - 7.37332916720468e-03f;
  q = q * z - 1.42647390514189e-02f;
  return y * p / q;
}

TANDEM_INLINE V gelu_of(V x) { return 0.5f * x * (1.0f + erf_of(x * 0.70710678118654752f)); }

// With u = sqrt(2 / pi) (x + 0.044715 x^3): (1 + tanh(u)) / 2 = sigmoid(2 u).
TANDEM_INLINE V gelu_tanh_of(V x) {
  const V twice = x * (1.5957691216057308f + 0.07135481627f * (x * x));
  return x * sigmoid_of(twice);
}

TANDEM_INLINE V gelu_grad_of(V dy, V x) {
  const V below = 0.5f * (1.0f + erf_of(x * 0.70710678118654752f));
  return dy * (below + x * 0.39894228040143268f * exp_of(-0.5f * x * x));
}

TANDEM_INLINE V gelu_tanh_grad_of(V dy, V x) {
  const V square = x * x;
  const V s = sigmoid_of(x * (1.5957691216057308f + 0.07135481627f * square));
  const V slope = 1.5957691216057308f + 0.21406444881f * square;  // d(2u)/dx
  return dy * (s + x * s * (1.0f - s) * slope);
}
