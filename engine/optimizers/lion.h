// Lion (Chen et al., arXiv:2302.06675, algorithm 2): g = scale * grad; w -= lr * (sign(beta1 * m +
// (1 - beta1) * g) + weight_decay * w); m = beta2 * m + (1 - beta2) * g. The sign of 0 is 0.
#pragma once

#include "engine/optimizers/formula.h"

namespace tandem {

struct LionSettings {
  double weight_decay = 0, beta1 = 0.9, beta2 = 0.99;

  template <class V>
  constexpr void visit(V& v) {
    v.key("weight_decay", weight_decay, at_least(0), "decoupled");
    v.pair("betas", "beta1", beta1, "beta2", beta2, from_below(0, 1),
           "decay of the moment in the step, and in what is kept");
  }
};

struct Lion : OptimizerDefaults {
  static constexpr const char* op = "LionUpdate";
  static constexpr double flops = 10;

  using Settings = LionSettings;
  static constexpr OptimizerName<Settings> names[] = {
      {.name = "lion", .source = "Chen et al. 2023, algorithm 2", .lr = 1e-4}};
  static constexpr OptimizerState states[] = {{"exp_avg"}};

  template <class S>
  struct Step {
    S lr, scale, shrink, beta1, rest1, beta2, rest2;  // shrink = 1 - lr * weight_decay
  };
  template <class S>
  static TANDEM_FORMULA Step<S> step(const Settings& s, double lr, std::int64_t, double scale) {
    return {S(lr),      S(scale),      S(1 - lr * s.weight_decay), S(s.beta1), S(1 - s.beta1),
            S(s.beta2), S(1 - s.beta2)};
  }

  template <unsigned, class S, class T>
  static TANDEM_FORMULA T element(const Step<S>& a, T w, T grad, T* states) {
    const T g = grad * a.scale, zero = T{}, lr = zero + a.lr;
    const T direction = states[0] * a.beta1 + g * a.rest1;
    states[0] = states[0] * a.beta2 + g * a.rest2;
    // NaN stays NaN.
    const T step = direction > zero ? lr : direction < zero ? -lr : direction;
    return w * a.shrink - step;
  }
};

}  // namespace tandem
