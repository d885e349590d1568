// What the optimizers of embedding tables do to one element: one source for numbers (float, double;
// host and device) and for the CPU's vectors. T is the operand, S the type of the settings; needs
// sqrt_of, abs_of and power_of for T. Comparisons are written so that NaN stays NaN.
// Included by row_optimizers.h and inside the CPU's ISA-named namespaces.

/// sgd: g = scale grad + weight_decay w; w' = w - lr g. Returns w'.
template <class S, class T>
TANDEM_FORMULA T row_sgd(const SgdStep<S>& s, T w, T grad) {
  return w - s.lr * (grad * s.scale + w * s.weight_decay);
}

/// Adam of the rows that a batch touches (Kingma and Ba 2015; LazyAdam of TensorFlow Addons and of
/// MindSpore): the moments of other rows do not decay. The formula of adam_element.
template <class S, class T>
TANDEM_FORMULA T row_adam(const AdamStep<S>& a, T w, T grad, T& exp_avg, T& exp_avg_sq) {
  const T g = grad * a.scale + w * a.weight_decay;
  exp_avg = exp_avg * a.beta1 + g * a.rest1;
  exp_avg_sq = exp_avg_sq * a.beta2 + g * a.rest2 * g;
  return w * a.shrink - (exp_avg * a.rate) / (sqrt_of(exp_avg_sq) * a.root_factor + a.epsilon);
}

/// adagrad (Duchi et al. 2011): sum += g^2; w' = w - rate g / (sqrt(sum) + epsilon)
template <class S, class T>
TANDEM_FORMULA T row_adagrad(const AdagradStep<S>& a, T w, T grad, T& sum) {
  const T g = grad * a.scale + w * a.weight_decay;
  sum = sum + g * g;
  return w - (g * a.rate) / (sqrt_of(sum) + a.epsilon);
}

/// rowwise_adagrad (FBGEMM's EXACT_ROWWISE_ADAGRAD): one sum for a row of D elements,
/// sum += (1/D) sum_j g_j^2; w' = w - g rate / (sqrt(sum) + epsilon). First the g of each element,
/// then the row's factor rate / (sqrt(sum) + epsilon), then w' = w - factor g.
template <class S, class T>
TANDEM_FORMULA T rowwise_gradient(const AdagradStep<S>& a, T w, T grad) {
  return grad * a.scale + w * a.weight_decay;
}
template <class S>
TANDEM_FORMULA S rowwise_factor(const AdagradStep<S>& a, S sum_of_squares, S columns, S& sum) {
  sum = sum + sum_of_squares / columns;
  return a.rate / (sqrt_of(sum) + a.epsilon);
}

/// n^(-lr_power); the square root for the usual lr_power = -0.5.
template <class S, class T>
TANDEM_FORMULA T ftrl_power(const FtrlStep<S>& s, T n) {
  return s.root ? sqrt_of(n) : power_of(n, s.power);
}

/// The states of ftrl, n and z; returns n'^(-lr_power). With g = scale grad:
/// n' = n + g^2; z' = z + g + 2 l2_shrinkage w - (n'^p - n^p) / lr w, p = -lr_power.
template <class S, class T>
TANDEM_FORMULA T ftrl_states(const FtrlStep<S>& s, T w, T grad, T& n, T& z) {
  const T g = grad * s.scale;
  const T more = n + g * g;
  const T power = ftrl_power(s, more);
  z = z + ((g + w * s.shrinkage) - (power - ftrl_power(s, n)) * s.inverse_lr * w);
  n = more;
  return power;
}

/// sign(z) l1 - z, and 0 where |z| <= l1.
template <class S, class T>
TANDEM_FORMULA T ftrl_threshold(const FtrlStep<S>& s, T z) {
  const T zero = T{};
  const T shifted = z > zero ? s.l1 - z : -s.l1 - z;
  return abs_of(z) <= zero + s.l1 ? zero : shifted;
}

/// x / (n^p / lr + l2_term); 0 where nothing was ever added to n.
template <class S, class T>
TANDEM_FORMULA T ftrl_quotient(const FtrlStep<S>& s, T x, T power) {
  const T zero = T{};
  const T divisor = power * s.inverse_lr + s.l2_term;
  return divisor == zero ? zero : x / divisor;
}

/// ftrl, Algorithm 1 of McMahan et al. 2013 ("Ad Click Prediction: a View from the Trenches"):
/// w' = (sign(z') l1 - z') / ((beta + sqrt(n')) / lr + l2), 0 where |z'| <= l1. TensorFlow's
/// (ApplyFtrlV2) and MindSpore's (FusedSparseFtrl) have 2 l2 in place of l2 and any lr_power.
template <class S, class T>
TANDEM_FORMULA T row_ftrl(const FtrlStep<S>& s, T w, T grad, T& n, T& z) {
  const T power = ftrl_states(s, w, grad, n, z);
  return ftrl_quotient(s, ftrl_threshold(s, z), power);
}

/// group_ftrl (sparse group lasso on a row of D elements: Yue et al. 2021, "Adaptive Optimizers
/// with Sparse Group Lasso for Neural Networks in CTR Prediction"; Ni et al. 2019): states as for
/// ftrl, x = ftrl_threshold(z'), then
/// w' = max(0, 1 - l21 sqrt(D) / |x|) x / ((beta + sqrt(n')) / lr + l2). This is the factor.
template <class S>
TANDEM_FORMULA S group_factor(S l21, S sum_of_squares, S columns) {
  const S limit = l21 * sqrt_of(columns), norm = sqrt_of(sum_of_squares);
  if (norm <= limit) return S(0);
  return S(1) - limit / norm;
}
