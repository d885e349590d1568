// GELU in both forms on vectors, for the epilogue of the matrix product. Included like gemm_tile.inl.

/// exp(x), relative error below 3e-7; x is clamped to where float exponents end: infinity from 88.4
/// on, 1e-38 at least.
inline Vector::Type exp_of(Vector::Type x) {
  x = Vector::min(Vector::max(x, Vector::all(-87.3f)), Vector::all(88.8f));
  const auto n = Vector::round(Vector::mul(x, Vector::all(1.44269504f)));
  auto r = Vector::fma(n, Vector::all(-0.693359375f), x);
  r = Vector::fma(n, Vector::all(2.12194440e-4f), r);
  auto p = Vector::all(1.9875691500e-4f);
  p = Vector::fma(p, r, Vector::all(1.3981999507e-3f));
  p = Vector::fma(p, r, Vector::all(8.3334519073e-3f));
  p = Vector::fma(p, r, Vector::all(4.1665795894e-2f));
  p = Vector::fma(p, r, Vector::all(1.6666665459e-1f));
  p = Vector::fma(p, r, Vector::all(5.0000001201e-1f));
  p = Vector::fma(p, Vector::mul(r, r), Vector::add(r, Vector::all(1.0f)));
  return Vector::scale_by_power(p, n);
}

/// x / 2 (1 + erf(x / sqrt 2)), by Abramowitz and Stegun 7.1.26: |error of erf| < 2e-7.
inline Vector::Type gelu_erf(Vector::Type x) {
  const auto one = Vector::all(1.0f);
  const auto z = Vector::mul(Vector::abs(x), Vector::all(0.70710678f));
  const auto t = Vector::div(one, Vector::fma(z, Vector::all(0.3275911f), one));
  auto p = Vector::all(1.061405429f);
  p = Vector::fma(p, t, Vector::all(-1.453152027f));
  p = Vector::fma(p, t, Vector::all(1.421413741f));
  p = Vector::fma(p, t, Vector::all(-0.284496736f));
  p = Vector::fma(p, t, Vector::all(0.254829592f));
  p = Vector::mul(p, t);
  const auto tail = Vector::mul(p, exp_of(Vector::mul(Vector::mul(z, z), Vector::all(-1.0f))));
  // x > 0: x - x tail / 2; x < 0: x tail / 2. From 16 on the tail is 0, which no infinity may meet;
  // at -infinity the product is NaN.
  const auto low = Vector::min(x, Vector::all(16.0f));
  const auto half = Vector::mul(Vector::mul(low, tail), Vector::all(0.5f));
  return Vector::select_positive(x, Vector::sub(x, half), half);
}

/// x / 2 (1 + tanh(u)) = x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3).
inline Vector::Type gelu_tanh(Vector::Type x) {
  const auto one = Vector::all(1.0f);
  const auto inner = Vector::fma(Vector::mul(x, x), Vector::all(0.044715f), one);
  const auto u = Vector::mul(Vector::mul(x, inner), Vector::all(-1.5957691216f));
  return Vector::div(x, Vector::add(one, exp_of(u)));
}
