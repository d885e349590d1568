// PyTorch's Adamax (Kingma and Ba, arXiv:1412.6980, section 7.1): g = scale * grad + weight_decay *
// w; m = beta1 * m + (1 - beta1) * g; u = max(beta2 * u, |g| + eps); w -= lr / (1 - beta1^t) * m /
// u.
#pragma once

#include "engine/optimizers/formula.h"

namespace tandem {

struct AdamaxSettings {
  double weight_decay = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;

  template <class V>
  constexpr void visit(V& v) {
    v.key("weight_decay", weight_decay, at_least(0), "added to the gradient");
    v.pair("betas", "beta1", beta1, "beta2", beta2, from_below(0, 1),
           "decay of the first moment and of the greatest gradient");
    v.key({"eps", "epsilon"}, epsilon, at_least(0), "added to the size of the gradient");
  }
};

struct Adamax : OptimizerDefaults {
  static constexpr const char* op = "AdamaxUpdate";
  static constexpr double flops = 11;

  using Settings = AdamaxSettings;
  static constexpr OptimizerName<Settings> names[] = {
      {.name = "adamax", .source = "PyTorch's Adamax", .lr = 2e-3}};
  static constexpr OptimizerState states[] = {{"exp_avg"}, {"exp_inf"}};

  template <class S>
  struct Step {
    S rate, scale, weight_decay, beta1, rest1, beta2, epsilon;  // rate = lr / (1 - beta1^t)
  };
  template <class S>
  static TANDEM_FORMULA Step<S> step(const Settings& s, double lr, std::int64_t number,
                                     double scale) {
    const double correction = 1.0 - std::pow(s.beta1, static_cast<double>(number));
    return {S(lr / correction), S(scale),   S(s.weight_decay), S(s.beta1),
            S(1 - s.beta1),     S(s.beta2), S(s.epsilon)};
  }

  template <unsigned, class S, class T>
  static TANDEM_FORMULA T element(const Step<S>& a, T w, T grad, T* states) {
    const T g = grad * a.scale + w * a.weight_decay;
    states[0] = states[0] * a.beta1 + g * a.rest1;
    const T before = states[1] * a.beta2, now = formula_abs(g) + a.epsilon;
    states[1] = before > now ? before : now;
    return w - (states[0] * a.rate) / states[1];
  }
};

}  // namespace tandem
