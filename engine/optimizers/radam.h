// PyTorch's RAdam (Liu et al., arXiv:1908.03265): Adam's moments m and v, r = 2 / (1 - beta2) - 1,
// r_t = r - 2 * t * beta2^t / (1 - beta2^t). Where r_t > 5: w -= lr * rect * m^ * sqrt(1 - beta2^t)
// / (sqrt(v)
// + eps), rect = sqrt((r_t - 4) * (r_t - 2) * r / ((r - 4) * (r - 2) * r_t)); else w -= lr * m^.
#pragma once

#include "engine/optimizers/formula.h"

namespace tandem {

struct RadamSettings {
  double weight_decay = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool decoupled = false;

  template <class V>
  constexpr void visit(V& v) {
    v.number("weight_decay", weight_decay, at_least(0),
             "added to the gradient unless decoupled_weight_decay");
    v.pair("betas", "beta1", beta1, "beta2", beta2, from_below(0, 1), "decay of both moments");
    v.number({"eps", "epsilon"}, epsilon, at_least(0), "added to the root of the second moment");
    v.flag("decoupled_weight_decay", decoupled,
           "w shrinks by lr weight_decay instead, as in adamw");
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
    S scale, weight_decay, beta1, rest1, beta2, rest2;  // weight_decay: 0 where decoupled
    S shrink;                                           // of the master; 1 where coupled
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
    Step<S> a{};
    a.scale = S(scale);
    a.weight_decay = S(s.decoupled ? 0.0 : s.weight_decay);
    a.beta1 = S(s.beta1);
    a.rest1 = S(1 - s.beta1);
    a.beta2 = S(s.beta2);
    a.rest2 = S(1 - s.beta2);
    a.shrink = S(s.decoupled ? 1 - lr * s.weight_decay : 1.0);
    a.epsilon = S(s.epsilon);
    a.rectified = length > 5;
    double rate = lr / (1 - std::pow(s.beta1, t));
    if (a.rectified) {
      rate *= std::sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length) *
                        (1 - power));
    }
    a.rate = S(rate);
    return a;
  }

  template <unsigned, class S, class T>
  static TANDEM_FORMULA T element(const Step<S>& a, T w, T grad, T* states) {
    const T g = grad * a.scale + w * a.weight_decay;
    states[0] = states[0] * a.beta1 + g * a.rest1;
    states[1] = states[1] * a.beta2 + g * a.rest2 * g;
    const T moment = states[0] * a.rate;
    return w * a.shrink - (a.rectified ? moment / (formula_sqrt(states[1]) + a.epsilon) : moment);
  }
};

}  // namespace tandem
