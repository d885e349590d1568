// One loop for each TileOp that is hot enough for code of its own. Included by
// vector_functions_*.cpp.

template <class F>
TANDEM_INLINE void map1(const TileCall& call, F f) {
  std::int64_t i = 0;
  for (; i + width <= call.n; i += width) store(call.y + i, f(load(call.a + i)));
  if (i < call.n) store_part(call.y + i, f(load_part(call.a + i, call.n - i)), call.n - i);
}

template <class F>
TANDEM_INLINE void map2(const TileCall& call, F f) {
  std::int64_t i = 0;
  for (; i + width <= call.n; i += width) store(call.y + i, f(load(call.a + i), load(call.b + i)));
  if (i < call.n) {
    const std::int64_t rest = call.n - i;
    store_part(call.y + i, f(load_part(call.a + i, rest), load_part(call.b + i, rest)), rest);
  }
}

template <class F>
TANDEM_INLINE void map3(const TileCall& call, F f) {
  std::int64_t i = 0;
  for (; i + width <= call.n; i += width) {
    store(call.y + i, f(load(call.a + i), load(call.b + i), load(call.c + i)));
  }
  if (i < call.n) {
    const std::int64_t rest = call.n - i;
    store_part(
        call.y + i,
        f(load_part(call.a + i, rest), load_part(call.b + i, rest), load_part(call.c + i, rest)),
        rest);
  }
}

#define TANDEM_TILE1(name, expression)                         \
  void tile_##name(const TileCall& call) {                     \
    [[maybe_unused]] const float s = call.s, t = call.t;       \
    map1(call, [=](V a) TANDEM_LAMBDA { return expression; }); \
  }
#define TANDEM_TILE2(name, expression)                              \
  void tile_##name(const TileCall& call) {                          \
    [[maybe_unused]] const float s = call.s, t = call.t;            \
    map2(call, [=](V a, V b) TANDEM_LAMBDA { return expression; }); \
  }
#define TANDEM_TILE3(name, expression)                                   \
  void tile_##name(const TileCall& call) {                               \
    map3(call, [=](V a, V b, V c) TANDEM_LAMBDA { return expression; }); \
  }
#define TANDEM_LAMBDA __attribute__((always_inline))

// max(x, 0) + log(1 + z), z = e^-|x|; log(1 + z) = log(u) z / (u - 1) with u = 1 + z rounded.
TANDEM_INLINE V softplus_of(V x) {
  const V z = exp_of(-abs_of(x));
  const V u = 1.0f + z;
  const V log_u = u == 1.0f ? z : log_of(u) * z / (u - 1.0f);
  return (x > 0.0f ? x : V{}) + log_u;
}

TANDEM_INLINE V clip_of(V x, float low, float high) {
  return min_of(all(high), x < low ? all(low) : x);
}

TANDEM_TILE1(copy, a)
TANDEM_TILE1(neg, -a)
TANDEM_TILE1(abs, abs_of(a))
TANDEM_TILE1(sign, a > 0.0f ? all(1.0f) : a < 0.0f ? all(-1.0f) : a)
TANDEM_TILE1(exp, exp_of(a))
TANDEM_TILE1(expm1, expm1_of(a))
TANDEM_TILE1(log, log_of(a))
TANDEM_TILE1(sqrt, sqrt_of(a))
TANDEM_TILE1(reciprocal, 1.0f / a)
TANDEM_TILE1(erf, erf_of(a))
TANDEM_TILE1(tanh, tanh_of(a))
TANDEM_TILE1(sigmoid, sigmoid_of(a))
TANDEM_TILE1(softplus, softplus_of(a))
TANDEM_TILE1(relu, a < 0.0f ? V{} : a)
TANDEM_TILE1(logical_not, number_of(a == 0.0f))
TANDEM_TILE1(is_true, number_of(a != 0.0f))
TANDEM_TILE1(square, a* a)
TANDEM_TILE1(cube, a* a* a)
TANDEM_TILE1(power_of_half, sqrt_of(a == -__builtin_inff() ? all(__builtin_inff()) : a + 0.0f))
TANDEM_TILE1(leaky_relu, a > 0.0f ? a : a * s)
TANDEM_TILE1(elu, a > 0.0f ? a : s * expm1_of(a))
TANDEM_TILE1(hard_sigmoid, clip_of(a * s + t, 0.0f, 1.0f))
TANDEM_TILE1(thresholded_relu, a <= s ? V{} : a)
TANDEM_TILE1(shrink, a < -t ? a + s : a <= t ? V{} : a - s)
TANDEM_TILE1(softsign, a / (1.0f + abs_of(a)))
TANDEM_TILE1(is_nan, number_of(a != a))
TANDEM_TILE1(clip, clip_of(a, s, t))
TANDEM_TILE1(scale_shift, a* s + t)
TANDEM_TILE1(add_number, a + s)
TANDEM_TILE1(multiply_number, a* s)
TANDEM_TILE1(from_number, s - a)
TANDEM_TILE1(divide_by_number, a / s)
TANDEM_TILE1(divide_number, s / a)

TANDEM_TILE2(add, a + b)
TANDEM_TILE2(sub, a - b)
TANDEM_TILE2(mul, a* b)
TANDEM_TILE2(div, a / b)
TANDEM_TILE2(maximum, (a > b) | (a != a) ? a : b)
TANDEM_TILE2(minimum, (a < b) | (a != a) ? a : b)
TANDEM_TILE2(prelu, a > 0.0f ? a : b * a)
TANDEM_TILE2(equal, number_of(a == b))
TANDEM_TILE2(less, number_of(a < b))
TANDEM_TILE2(greater, number_of(a > b))
TANDEM_TILE2(less_or_equal, number_of(a <= b))
TANDEM_TILE2(greater_or_equal, number_of(a >= b))
TANDEM_TILE2(logical_and, number_of((a != 0.0f) & (b != 0.0f)))
TANDEM_TILE2(logical_or, number_of((a != 0.0f) | (b != 0.0f)))
TANDEM_TILE2(logical_xor, number_of((a != 0.0f) ^ (b != 0.0f)))
TANDEM_TILE2(relu_grad, b <= 0.0f ? V{} : a)
TANDEM_TILE2(leaky_relu_grad, b > 0.0f ? a : a * s)
TANDEM_TILE2(clip_grad, (b > s) & (b < t) ? a : V{})
TANDEM_TILE2(tanh_grad, a*(1.0f - b * b))
TANDEM_TILE2(sigmoid_grad, a* b*(1.0f - b))
TANDEM_TILE2(add_relu, (a + b) < 0.0f ? V{} : (a + b))
TANDEM_TILE2(scaled_add, a* s + b)

TANDEM_TILE3(where, a != 0.0f ? b : c)
TANDEM_TILE3(multiply_add, a* b + c)
TANDEM_TILE3(multiply3, a* b* c)

// s: whether by tanh
void tile_gelu(const TileCall& call) {
  if (call.s != 0.0f)
    map1(call, [](V a) TANDEM_LAMBDA { return gelu_tanh_of(a); });
  else
    map1(call, [](V a) TANDEM_LAMBDA { return gelu_of(a); });
}
void tile_gelu_grad(const TileCall& call) {
  if (call.s != 0.0f)
    map2(call, [](V dy, V x) TANDEM_LAMBDA { return gelu_tanh_grad_of(dy, x); });
  else
    map2(call, [](V dy, V x) TANDEM_LAMBDA { return gelu_grad_of(dy, x); });
}

void tile_pow(const TileCall& call) {
  for (std::int64_t i = 0; i < call.n; ++i) call.y[i] = __builtin_powf(call.a[i], call.b[i]);
}
void tile_pow_number(const TileCall& call) {
  for (std::int64_t i = 0; i < call.n; ++i) call.y[i] = __builtin_powf(call.a[i], call.s);
}

template <class T>
TANDEM_INLINE void convert(const TileCall& call) {
  const T* a = reinterpret_cast<const T*>(call.a);
  for (std::int64_t i = 0; i < call.n; ++i) call.y[i] = static_cast<float>(a[i]);
}
void tile_from_uint8(const TileCall& call) { convert<std::uint8_t>(call); }
void tile_from_int32(const TileCall& call) { convert<std::int32_t>(call); }
void tile_from_int64(const TileCall& call) { convert<std::int64_t>(call); }
void tile_to_bool(const TileCall& call) {
  unsigned char* y = reinterpret_cast<unsigned char*>(call.y);
  for (std::int64_t i = 0; i < call.n; ++i) y[i] = call.a[i] != 0.0f;
}

void widen(const std::uint16_t* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = __builtin_bit_cast(float, static_cast<std::uint32_t>(x[i]) << 16);
}
// Rounds to nearest, ties to even; a number that is none stays one.
void narrow(const float* x, std::uint16_t* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x[i]);
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const std::uint32_t quiet = (bits >> 16) | 0x40u;
    y[i] = static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
  }
}
// Exact. A subnormal is the float 2^-14 + x, less 2^-14.
void widen_float16(const std::uint16_t* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t sign = (x[i] & 0x8000u) << 16, magnitude = (x[i] & 0x7fffu) << 13;
    const float small =
        __builtin_bit_cast(float, magnitude + 0x38800000u) - __builtin_bit_cast(float, 0x38800000u);
    const std::uint32_t normal = magnitude + (magnitude >= 0x0f800000u ? 0x70000000u : 0x38000000u);
    const std::uint32_t bits =
        magnitude < 0x00800000u ? __builtin_bit_cast(std::uint32_t, small) : normal;
    y[i] = __builtin_bit_cast(float, sign | bits);
  }
}
// Rounds to nearest, ties to even; a number that is none stays one. Where the result is subnormal,
// adding 0.5 leaves its rounded mantissa in the last bits.
void narrow_float16(const float* x, std::uint16_t* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x[i]);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    const std::uint32_t small =
        __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, magnitude) + 0.5f) -
        0x3f000000u;
    const std::uint32_t normal = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13;
    const std::uint32_t finite = magnitude < 0x38800000u ? small : normal;
    const std::uint32_t beyond = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    y[i] = static_cast<std::uint16_t>(((bits >> 16) & 0x8000u) |
                                      (magnitude >= 0x477ff000u ? beyond : finite));
  }
}
void tile_from_bfloat16(const TileCall& call) {
  widen(reinterpret_cast<const std::uint16_t*>(call.a), call.y, call.n);
}
void tile_to_bfloat16(const TileCall& call) {
  narrow(call.a, reinterpret_cast<std::uint16_t*>(call.y), call.n);
}
void tile_from_float16(const TileCall& call) {
  widen_float16(reinterpret_cast<const std::uint16_t*>(call.a), call.y, call.n);
}
void tile_to_float16(const TileCall& call) {
  narrow_float16(call.a, reinterpret_cast<std::uint16_t*>(call.y), call.n);
}

template <class Narrow, class Widen>
TANDEM_INLINE void round_through(const TileCall& call, Narrow to_half, Widen to_float) {
  constexpr std::int64_t most = 256;
  std::uint16_t half[most];
  for (std::int64_t i = 0; i < call.n; i += most) {
    const std::int64_t n = call.n - i < most ? call.n - i : most;
    to_half(call.a + i, half, n);
    to_float(half, call.y + i, n);
  }
}
void tile_round_bfloat16(const TileCall& call) { round_through(call, narrow, widen); }
void tile_round_float16(const TileCall& call) {
  round_through(call, narrow_float16, widen_float16);
}

#undef TANDEM_TILE1
#undef TANDEM_TILE2
#undef TANDEM_TILE3
