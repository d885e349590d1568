// LAMB (You et al., arXiv:1904.00962, algorithm 2): Adam's moments m and v, u = m^ / (sqrt(v^) +
// eps) + weight_decay * w, w -= lr * r * u with r = |w| / |u| over the whole parameter, 1 where
// either norm is 0, and at most trust_clip where that is not 0. Without always_adapt it is 1 also
// where weight_decay is 0, as in NVIDIA's FusedLAMB and timm's Lamb by default: that is Adam.
#pragma once

#include "engine/optimizers/adam.h"

namespace tandem {

struct LambSettings {
  double weight_decay = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6;
  bool bias_correction = true, always_adapt = true;
  double trust_clip = 0;

  template <class V>
  constexpr void visit(V& v) {
    v.key("weight_decay", weight_decay, at_least(0), "decoupled");
    v.pair("betas", "beta1", beta1, "beta2", beta2, from_below(0, 1), "decay of both moments");
    v.key({"eps", "epsilon"}, epsilon, at_least(0), "added to the root of the second moment");
    v.key("bias_correction", bias_correction, "of both moments");
    v.key({"always_adapt", ""}, always_adapt, "false: no ratio of norms where weight_decay is 0");
    v.key("trust_clip", trust_clip, at_least(0), "the ratio of norms is at most this; 0: no bound");
  }
};

struct Lamb : OptimizerDefaults {
  static constexpr const char* op = "LambUpdate";
  static constexpr double flops = 28;
  static constexpr bool whole_tensor = true;

  using Settings = LambSettings;
  static constexpr OptimizerName<Settings> names[] = {{"lamb", "You et al. 2019, algorithm 2"}};
  static constexpr OptimizerState states[] = {{"exp_avg"}, {.name = "exp_avg_sq", .squares = true}};

  /// A kind that computes the same at less cost where `is_simpler`.
  using Simpler = Adam;
  static constexpr bool is_simpler(const Settings& s) {
    return !s.always_adapt && s.weight_decay == 0;
  }
  static constexpr AdamSettings simpler(const Settings& s) {
    return {.beta1 = s.beta1,
            .beta2 = s.beta2,
            .epsilon = s.epsilon,
            .bias_correction = s.bias_correction};
  }

  template <class S>
  struct Step {
    S scale, beta1, rest1, beta2, rest2;  // rest = 1 - beta
    S weight_decay;
    S factor;       // 1 / (1 - beta1^t)
    S root_factor;  // 1 / sqrt(1 - beta2^t)
    S epsilon;
  };
  template <class S>
  static TANDEM_FORMULA Step<S> step(const Settings& s, double, std::int64_t number, double scale) {
    const double t = static_cast<double>(number);
    Step<S> a{};
    a.scale = S(scale);
    a.beta1 = S(s.beta1);
    a.rest1 = S(1.0 - s.beta1);
    a.beta2 = S(s.beta2);
    a.rest2 = S(1.0 - s.beta2);
    a.weight_decay = S(s.weight_decay);
    a.factor = S(s.bias_correction ? 1.0 / (1.0 - std::pow(s.beta1, t)) : 1.0);
    a.root_factor = S(s.bias_correction ? 1.0 / std::sqrt(1.0 - std::pow(s.beta2, t)) : 1.0);
    a.epsilon = S(s.epsilon);
    return a;
  }

  template <class S, class T>
  static TANDEM_FORMULA T direction(const Step<S>& a, T w, T exp_avg, T exp_avg_sq) {
    return (exp_avg * a.factor) / (formula_sqrt(exp_avg_sq) * a.root_factor + a.epsilon) +
           w * a.weight_decay;
  }
  /// The first walk over a tensor replaces the states; the squares of `terms` are summed.
  static constexpr int terms = 2;
  template <class S, class T>
  static TANDEM_FORMULA void first(const Step<S>& a, T w, T grad, T* states, T* squared) {
    const T g = grad * a.scale;
    states[0] = states[0] * a.beta1 + g * a.rest1;
    states[1] = states[1] * a.beta2 + g * a.rest2 * g;
    squared[0] = w;
    squared[1] = direction(a, w, states[0], states[1]);
  }
  /// The step's factor from these sums; a norm that is NaN stays NaN.
  static TANDEM_FORMULA double factor(const Settings& s, double lr, const TensorSums& sums) {
    const double ratio = sums.squares[0] == 0 || sums.squares[1] == 0
                             ? 1.0
                             : std::sqrt(sums.squares[0]) / std::sqrt(sums.squares[1]);
    return lr * (s.trust_clip > 0 && ratio > s.trust_clip ? s.trust_clip : ratio);
  }
  /// The second walk, which sees the new states and no gradient.
  template <class S, class T>
  static TANDEM_FORMULA T last(const Step<S>& a, T w, const T* states, S factor) {
    return w - direction(a, w, states[0], states[1]) * factor;
  }
};

}  // namespace tandem
