// PyTorch's RAdam (Liu et al., arXiv:1908.03265): Adam's moments m and v, r = 2 / (1 - beta2) - 1,
// r_t = r - 2 * t * beta2^t / (1 - beta2^t). Where r_t > 5: w -= lr * rect * m^ * sqrt(1 - beta2^t)
// / (sqrt(v) + eps), rect = sqrt((r_t - 4) * (r_t - 2) * r / ((r - 4) * (r - 2) * r_t)); else w -=
// lr * m^.
#pragma once

#include "engine/optimizers/moments.h"

namespace tandem {

struct RadamSettings {
  double weight_decay = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool decoupled = false;

  template <class V>
  constexpr void visit(V& v) {
    v.key("weight_decay", weight_decay, at_least(0),
          "added to the gradient unless decoupled_weight_decay");
    v.pair("betas", "beta1", beta1, "beta2", beta2, from_below(0, 1), "decay of both moments");
    v.key({"eps", "epsilon"}, epsilon, at_least(0), "added to the root of the second moment");
    v.key("decoupled_weight_decay", decoupled, "w shrinks by lr weight_decay instead, as in adamw");
  }
};

struct Radam : OptimizerDefaults {
  static constexpr const char* op = "RadamUpdate";
  static constexpr double flops = 14;

  using Settings = RadamSettings;
  static constexpr OptimizerName<Settings> names[] = {{"radam", "PyTorch's RAdam"}};
  static constexpr OptimizerState states[] = {{"exp_avg"}, {.name = "exp_avg_sq", .squares = true}};

  template <class S>
  struct Step {
    Moments<S> moments;
    S rate, epsilon;
    bool rectified;
    static constexpr int flags = 1;
    TANDEM_FORMULA bool& flag(int) { return rectified; }
  };
  template <class S>
  static TANDEM_FORMULA Step<S> step(const Settings& s, double lr, std::int64_t number,
                                     double scale) {
    const double t = static_cast<double>(number), power = std::pow(s.beta2, t);
    const double limit = 2 / (1 - s.beta2) - 1, length = limit - 2 * t * power / (1 - power);
    const bool rectified = length > 5;
    double rate = lr / (1 - std::pow(s.beta1, t));
    if (rectified) {
      rate *= std::sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length) *
                        (1 - power));
    }
    return {moments_of<S>(s, lr, scale), S(rate), S(s.epsilon), rectified};
  }

  template <unsigned, class S, class T>
  static TANDEM_FORMULA T element(const Step<S>& a, T w, T grad, T* states) {
    a.moments.accumulate(w, grad, states);
    const T moment = states[0] * a.rate;
    return w * a.moments.shrink -
           (a.rectified ? moment / (formula_sqrt(states[1]) + a.epsilon) : moment);
  }
};

}  // namespace tandem
