// FTRL-Proximal (McMahan et al. 2013, "Ad Click Prediction: a View from the Trenches", algorithm
// 1): with g = scale * grad and p = -lr_power, n' = n + g^2; z' = z + g + 2 * l2_shrinkage * w -
// (n'^p - n^p) / lr * w; w = (sign(z') * l1 - z') / ((beta + n'^p) / lr + l2), and 0 where |z'| <=
// l1. TensorFlow (ApplyFtrlV2) and MindSpore (FusedSparseFtrl) have 2 * l2 in place of l2. Rows
// that a batch does not look up stay as they are, as in their sparse forms.
#pragma once

#include "engine/optimizers/formula.h"

namespace tandem {

/// What l2 means: the paper's l2 |w|^2 / 2, or l2 |w|^2 of TensorFlow and MindSpore.
enum class FtrlDialect { mcmahan, tensorflow, mindspore };

/// `group`: for group_ftrl, the only kind with the key l21.
template <bool group>
struct FtrlSettings {
  double initial_accumulator = 0.1, l1 = 0, l2 = 0, beta = 0, l2_shrinkage = 0, lr_power = -0.5;
  double l21 = 0;
  FtrlDialect dialect = FtrlDialect::mcmahan;

  template <class V>
  constexpr void visit(V& v) {
    v.key({"initial_accumulator", ""}, initial_accumulator, at_least(0),
          "where the sum of squares starts");
    v.key("l1", l1, at_least(0), "makes weights exactly 0");
    v.key("l2", l2, at_least(0), "pulls weights to 0");
    v.key("beta", beta, at_least(0), "added to the root of the accumulator");
    v.key("l2_shrinkage", l2_shrinkage, at_least(0),
          "adds 2 l2_shrinkage w to the gradient of linear");
    v.key("lr_power", lr_power, between(-10, 0), "power of the accumulator in the rate");
    v.key({group ? "l21" : "", "l21"}, l21, at_least(0), "makes whole rows exactly 0");
    v.key("dialect", dialect, "mcmahan|tensorflow|mindspore",
          "l2 |w|^2 / 2 as in the paper, or l2 |w|^2 as in TensorFlow and MindSpore");
  }
};

/// What ftrl and group_ftrl have in common.
template <bool group>
struct FtrlDefaults : OptimizerDefaults {
  using Settings = FtrlSettings<group>;
  static constexpr double flops = 14;
  static constexpr OptimizerState states[] = {
      {.name = "accumulator", .start = "initial_accumulator", .squares = true}, {"linear"}};
  /// A step divides by the rate, and a schedule may end at 0.
  static TANDEM_FORMULA bool is_no_step(double lr) { return lr == 0; }

  template <class S>
  struct Step {
    S scale, l1, shrinkage, inverse_lr;
    S l2_term;  // beta / lr + l2 or 2 * l2
    S power;    // -lr_power
    S l21;
    bool root;  // power is 0.5
    static constexpr int flags = 1;
    TANDEM_FORMULA bool& flag(int) { return root; }
  };
  template <class S>
  static TANDEM_FORMULA Step<S> step(const Settings& s, double lr, std::int64_t, double scale) {
    const double l2 = s.dialect == FtrlDialect::mcmahan ? s.l2 : 2.0 * s.l2;
    Step<S> a{};
    a.scale = S(scale);
    a.l1 = S(s.l1);
    a.shrinkage = S(2.0 * s.l2_shrinkage);
    a.inverse_lr = S(1.0 / lr);
    a.l2_term = S(s.beta / lr + l2);
    a.power = S(-s.lr_power);
    a.l21 = S(s.l21);
    a.root = s.lr_power == -0.5;
    return a;
  }

  /// n^p
  template <class S, class T>
  static TANDEM_FORMULA T power(const Step<S>& a, T n) {
    return a.root ? formula_sqrt(n) : formula_power(n, a.power);
  }
  /// Replaces n and z; returns n'^p.
  template <class S, class T>
  static TANDEM_FORMULA T accumulate(const Step<S>& a, T w, T grad, T& n, T& z) {
    const T g = grad * a.scale;
    const T more = n + g * g;
    const T new_power = power(a, more);
    z = z + ((g + w * a.shrinkage) - (new_power - power(a, n)) * a.inverse_lr * w);
    n = more;
    return new_power;
  }
  /// sign(z) * l1 - z, and 0 where |z| <= l1.
  template <class S, class T>
  static TANDEM_FORMULA T threshold(const Step<S>& a, T z) {
    const T zero = T{};
    const T shifted = z > zero ? a.l1 - z : -a.l1 - z;
    return formula_abs(z) <= zero + a.l1 ? zero : shifted;
  }
  /// x / (n^p / lr + l2_term); 0 where nothing was ever added to n.
  template <class S, class T>
  static TANDEM_FORMULA T quotient(const Step<S>& a, T x, T n_power) {
    const T zero = T{};
    const T divisor = n_power * a.inverse_lr + a.l2_term;
    return divisor == zero ? zero : x / divisor;
  }
};

struct Ftrl : FtrlDefaults<false> {
  static constexpr const char* op = "FtrlUpdate";
  static constexpr OptimizerName<Settings> names[] = {
      {"ftrl", "McMahan et al. 2013, algorithm 1", {}, true}};

  template <unsigned, class S, class T>
  static TANDEM_FORMULA T element(const Step<S>& a, T w, T grad, T* states) {
    const T n_power = accumulate(a, w, grad, states[0], states[1]);
    return quotient(a, threshold(a, states[1]), n_power);
  }
};

}  // namespace tandem
