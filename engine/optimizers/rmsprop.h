// PyTorch's RMSprop (Tieleman and Hinton 2012; centered: Graves, arXiv:1308.0850): g = scale * grad
// + weight_decay * w; v = alpha * v + (1 - alpha) * g^2; centered: m = alpha * m + (1 - alpha) * g,
// and v - m^2 takes the place of v below; d = g / (sqrt(v) + eps); with momentum: buffer = momentum
// * buffer + d takes the place of d; w -= lr * d.
#pragma once

#include "engine/optimizers/formula.h"

namespace tandem {

struct RmspropSettings {
  double weight_decay = 0, alpha = 0.99, epsilon = 1e-8, momentum = 0;
  bool centered = false;

  template <class V>
  constexpr void visit(V& v) {
    v.key("weight_decay", weight_decay, at_least(0), "added to the gradient");
    v.key("momentum", momentum, between(0, 1), "decay of the sum of scaled gradients");
    v.key("alpha", alpha, between(0, 1), "decay of the mean square");
    v.key({"eps", "epsilon"}, epsilon, at_least(0), "added to the root of the mean square");
    v.key("centered", centered, "the variance replaces the mean square");
  }
};

struct Rmsprop : OptimizerDefaults {
  static constexpr const char* op = "RmspropUpdate";
  static constexpr double flops = 12;

  using Settings = RmspropSettings;
  static constexpr OptimizerName<Settings> names[] = {
      {.name = "rmsprop", .source = "PyTorch's RMSprop", .lr = 0.01}};
  static constexpr OptimizerState states[] = {
      {.name = "square_avg", .squares = true}, {"grad_avg"}, {"momentum_buffer"}};
  static constexpr unsigned has_mean = 2, has_buffer = 4;
  static constexpr unsigned state_sets[] = {1, 1 | has_mean, 1 | has_buffer,
                                            1 | has_mean | has_buffer};
  static constexpr unsigned states_of(const Settings& s) {
    return 1u | (s.centered ? has_mean : 0u) | (s.momentum > 0 ? has_buffer : 0u);
  }

  template <class S>
  struct Step {
    S lr, scale, weight_decay, alpha, rest, epsilon, momentum;  // rest = 1 - alpha
  };
  template <class S>
  static TANDEM_FORMULA Step<S> step(const Settings& s, double lr, std::int64_t, double scale) {
    return {S(lr),          S(scale),     S(s.weight_decay), S(s.alpha),
            S(1 - s.alpha), S(s.epsilon), S(s.momentum)};
  }

  template <unsigned set, class S, class T>
  static TANDEM_FORMULA T element(const Step<S>& a, T w, T grad, T* states) {
    const T g = grad * a.scale + w * a.weight_decay;
    states[0] = states[0] * a.alpha + g * a.rest * g;
    T square = states[0];
    if constexpr ((set & has_mean) != 0) {
      states[1] = states[1] * a.alpha + g * a.rest;
      square = square - states[1] * states[1];
      square = square < T{} ? T{} : square;  // negative only by rounding: a variance is not
    }
    const T step = g / (formula_sqrt(square) + a.epsilon);
    if constexpr ((set & has_buffer) == 0) {
      return w - step * a.lr;
    } else {
      states[2] = states[2] * a.momentum + step;
      return w - states[2] * a.lr;
    }
  }
};

}  // namespace tandem
