// PyTorch's Adadelta (Zeiler, arXiv:1212.5701): g = scale * grad + weight_decay * w; v = rho * v +
// (1 - rho) * g^2; d = sqrt(u + eps) / sqrt(v + eps) * g; u = rho * u + (1 - rho) * d^2; w -= lr *
// d.
#pragma once

#include "engine/optimizers/formula.h"

namespace tandem {

struct AdadeltaSettings {
  double weight_decay = 0, rho = 0.9, epsilon = 1e-6;

  template <class V>
  constexpr void visit(V& v) {
    v.key("weight_decay", weight_decay, at_least(0), "added to the gradient");
    v.key("rho", rho, between(0, 1), "decay of both mean squares");
    v.key({"eps", "epsilon"}, epsilon, at_least(0), "added to both mean squares");
  }
};

struct Adadelta : OptimizerDefaults {
  static constexpr const char* op = "AdadeltaUpdate";
  static constexpr double flops = 16;

  using Settings = AdadeltaSettings;
  static constexpr OptimizerName<Settings> names[] = {
      {.name = "adadelta", .source = "PyTorch's Adadelta", .lr = 1}};
  static constexpr OptimizerState states[] = {{.name = "square_avg", .squares = true},
                                              {.name = "acc_delta", .squares = true}};

  template <class S>
  struct Step {
    S lr, scale, weight_decay, rho, rest, epsilon;  // rest = 1 - rho
  };
  template <class S>
  static TANDEM_FORMULA Step<S> step(const Settings& s, double lr, std::int64_t, double scale) {
    return {S(lr), S(scale), S(s.weight_decay), S(s.rho), S(1 - s.rho), S(s.epsilon)};
  }

  template <unsigned, class S, class T>
  static TANDEM_FORMULA T element(const Step<S>& a, T w, T grad, T* states) {
    const T g = grad * a.scale + w * a.weight_decay;
    states[0] = states[0] * a.rho + g * a.rest * g;
    const T step = formula_sqrt(states[1] + a.epsilon) / formula_sqrt(states[0] + a.epsilon) * g;
    states[1] = states[1] * a.rho + step * a.rest * step;
    return w - step * a.lr;
  }
};

}  // namespace tandem
