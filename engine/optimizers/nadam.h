// PyTorch's NAdam (Dozat 2016, "Incorporating Nesterov Momentum into Adam"): Adam's moments m and
// v, mu_t = beta1 * (1 - 0.96^(t * momentum_decay) / 2), M_t = mu_1 * ... * mu_t; w -= lr * ((1 -
// mu_t) / (1 - M_t) * g + mu_{t+1} / (1 - M_{t+1}) * m) / (sqrt(v / (1 - beta2^t)) + eps).
#pragma once

#include "engine/optimizers/moments.h"

namespace tandem {

struct NadamSettings {
  double weight_decay = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, momentum_decay = 4e-3;
  bool decoupled = false;

  template <class V>
  constexpr void visit(V& v) {
    v.key("weight_decay", weight_decay, at_least(0),
          "added to the gradient unless decoupled_weight_decay");
    v.pair("betas", "beta1", beta1, "beta2", beta2, from_below(0, 1), "decay of both moments");
    v.key({"eps", "epsilon"}, epsilon, at_least(0), "added to the root of the second moment");
    v.key("momentum_decay", momentum_decay, at_least(0), "how soon beta1 counts in full");
    v.key("decoupled_weight_decay", decoupled, "w shrinks by lr weight_decay instead, as in adamw");
  }
};

struct Nadam : OptimizerDefaults {
  static constexpr const char* op = "NadamUpdate";
  static constexpr double flops = 17;

  using Settings = NadamSettings;
  static constexpr OptimizerName<Settings> names[] = {
      {.name = "nadam", .source = "PyTorch's NAdam", .lr = 2e-3}};
  static constexpr OptimizerState states[] = {{"exp_avg"}, {.name = "exp_avg_sq", .squares = true}};

  /// M_t without beta1^t, from log(1 - x) = -sum_k x^k / k: sum_i q^(i k) is a geometric sum.
  static TANDEM_FORMULA double product(double momentum_decay, double t) {
    const double log_q = momentum_decay * std::log(0.96);
    if (log_q == 0) return std::pow(0.5, t);
    double sum = 0, half = 1;
    for (int k = 1; k <= 50; ++k) {
      half *= 0.5;
      sum += half / k * std::exp(k * log_q) * std::expm1(k * t * log_q) / std::expm1(k * log_q);
    }
    return std::exp(-sum);
  }

  template <class S>
  struct Step {
    Moments<S> moments;
    S gradient_rate, moment_rate;
    S root_factor;  // 1 / sqrt(1 - beta2^t)
    S epsilon;
  };
  template <class S>
  static TANDEM_FORMULA Step<S> step(const Settings& s, double lr, std::int64_t number,
                                     double scale) {
    const double t = static_cast<double>(number), log_q = s.momentum_decay * std::log(0.96);
    const double now = s.beta1 * (1 - 0.5 * std::exp(t * log_q));
    const double next = s.beta1 * (1 - 0.5 * std::exp((t + 1) * log_q));
    const double all = std::pow(s.beta1, t) * product(s.momentum_decay, t);
    return {moments_of<S>(s, lr, scale), S(lr * (1 - now) / (1 - all)),
            S(lr * next / (1 - all * next)), S(1 / std::sqrt(1 - std::pow(s.beta2, t))),
            S(s.epsilon)};
  }

  template <unsigned, class S, class T>
  static TANDEM_FORMULA T element(const Step<S>& a, T w, T grad, T* states) {
    const T g = a.moments.accumulate(w, grad, states);
    const T root = formula_sqrt(states[1]) * a.root_factor + a.epsilon;
    return w * a.moments.shrink - (g * a.gradient_rate + states[0] * a.moment_rate) / root;
  }
};

}  // namespace tandem
