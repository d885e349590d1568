// PyTorch's Adafactor (Shazeer and Stern, arXiv:1804.04235): g = scale * grad, s = t^beta2_decay. A
// matrix on a parameter's last two axes keeps means of squares r = (1 - s) * r + s * mean(g^2 over
// a row) and c = (1 - s) * c + s * mean(g^2 over a column), and has v = r * c / max(mean(r), eps1);
// a parameter of one axis keeps v = (1 - s) * v + s * g^2. With u = g / max(sqrt(v), eps1), a =
// max(eps2, rms(w)) * min(lr, 1 / sqrt(t)) and rms over the whole parameter, w = (1 - lr *
// weight_decay) * w - a / max(1, rms(u) / d) * u.
#pragma once

#include "engine/optimizers/formula.h"

namespace tandem {

struct AdafactorSettings {
  double weight_decay = 0, beta2_decay = -0.8, d = 1;
  double eps1 = 1.1920928955078125e-07;  // float32's epsilon, which PyTorch's None means
  double eps2 = 1e-3;

  template <class V>
  constexpr void visit(V& v) {
    v.key("weight_decay", weight_decay, at_least(0), "decoupled");
    v.key("beta2_decay", beta2_decay, between(-10, 0),
          "step t counts t^beta2_decay in the means of squares");
    v.key("eps1", eps1, at_least(0), "least root of the second moment");
    v.key("eps2", eps2, at_least(0), "least size of a parameter, to which steps are relative");
    v.key("d", d, at_least(1), "greatest size of a step before the rate");
  }
};

struct Adafactor : OptimizerDefaults {
  static constexpr const char* op = "AdafactorUpdate";
  static constexpr double flops = 18;
  static constexpr bool whole_tensor = true;

  using Settings = AdafactorSettings;
  static constexpr OptimizerName<Settings> names[] = {
      {.name = "adafactor", .source = "PyTorch's Adafactor", .lr = 1e-2}};
  static constexpr OptimizerState states[] = {
      {.name = "row_var", .shape = StateShape::row_statistics, .squares = true},
      {.name = "col_var", .shape = StateShape::column_statistics, .squares = true},
      {.name = "variance", .shape = StateShape::like_vector, .squares = true}};

  template <class S>
  struct Step {
    S scale, kept, fresh;  // fresh = t^beta2_decay, kept = 1 - fresh
    S eps1, least;         // least = eps1^2
    S shrink;              // 1 - lr * weight_decay
  };
  template <class S>
  static TANDEM_FORMULA Step<S> step(const Settings& s, double lr, std::int64_t number,
                                     double scale) {
    const double fresh = std::pow(static_cast<double>(number), s.beta2_decay);
    return {S(scale),  S(1 - fresh),       S(fresh),
            S(s.eps1), S(s.eps1 * s.eps1), S(1 - lr * s.weight_decay)};
  }

  /// The term that is summed over rows and columns.
  template <class S, class T>
  static TANDEM_FORMULA T statistic(const Step<S>& a, T grad) {
    const T g = grad * a.scale;
    return g * g;
  }
  /// A state's new value, from the mean of these terms.
  template <class S, class T>
  static TANDEM_FORMULA T moved(const Step<S>& a, T state, T mean) {
    return state * a.kept + mean * a.fresh;
  }
  /// The factor of a row's second moments next to the states of the columns; 1 for a vector.
  template <class S>
  static TANDEM_FORMULA S row_factor(const Step<S>& a, S row, S mean_of_rows) {
    return row / (mean_of_rows > a.eps1 ? mean_of_rows : a.eps1);
  }
  template <class S, class T>
  static TANDEM_FORMULA T direction(const Step<S>& a, T grad, S of_row, T of_column) {
    const T variance = of_column * of_row, least = T{} + a.least;
    return grad * a.scale / formula_sqrt(variance < least ? least : variance);
  }
  /// The sums of squares that `factor` gets: of masters, of directions.
  static constexpr int terms = 2;
  static TANDEM_FORMULA double factor(const Settings& s, double lr, const TensorSums& sums) {
    const auto elements = static_cast<double>(sums.elements);
    const double size = std::sqrt(sums.squares[0] / elements);
    const double excess = std::sqrt(sums.squares[1] / elements) / s.d;
    const double limit = 1 / std::sqrt(static_cast<double>(sums.step));
    return (size > s.eps2 ? size : s.eps2) * (lr < limit ? lr : limit) / (excess > 1 ? excess : 1);
  }
  template <class S, class T>
  static TANDEM_FORMULA T last(const Step<S>& a, T w, T direction, S factor) {
    return w * a.shrink - direction * factor;
  }
};

}  // namespace tandem
