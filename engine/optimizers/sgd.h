// PyTorch's SGD: g = scale * grad + weight_decay * w; buffer = momentum * buffer + (1 - dampening)
// * g, which is g in step 1; w -= lr * (nesterov ? g + momentum * buffer : buffer). Without
// momentum w -= lr * g.
#pragma once

#include "engine/optimizers/formula.h"

namespace tandem {

struct SgdSettings {
  double weight_decay = 0, momentum = 0, dampening = 0;
  bool nesterov = false;

  template <class V>
  constexpr void visit(V& v) {
    v.key("weight_decay", weight_decay, at_least(0), "added to the gradient");
    v.key("momentum", momentum, between(0, 1), "decay of the sum of gradients");
    v.key("dampening", dampening, between(0, 1), "1 - dampening of a gradient enters the sum");
    v.key("nesterov", nesterov, "a step ahead; with momentum and without dampening");
  }
};

struct Sgd : OptimizerDefaults {
  static constexpr const char* op = "SgdUpdate";
  static constexpr double flops = 6;

  using Settings = SgdSettings;
  static constexpr OptimizerName<Settings> names[] = {{"sgd", "PyTorch's SGD"}};
  static constexpr OptimizerState states[] = {{"momentum_buffer"}};
  static constexpr unsigned state_sets[] = {0, 1};
  static constexpr unsigned states_of(const Settings& s) { return s.momentum != 0 ? 1 : 0; }
  static constexpr bool keeps_still(const Settings& s) {
    return s.momentum == 0 && s.weight_decay == 0;
  }
  static constexpr bool takes_rows(const Settings& s) { return s.momentum == 0; }
  static constexpr const char* rows_need = "without momentum";
  static constexpr SettingsProblem problem(const Settings& s) {
    if (!s.nesterov || (s.momentum > 0 && s.dampening == 0)) return {};
    return {"nesterov", "Nesterov needs momentum above 0 and no dampening"};
  }

  template <class S>
  struct Step {
    S lr, scale, weight_decay, momentum;
    S decay, keep;  // buffer = decay * buffer + keep * g
    bool nesterov;
    static constexpr int flags = 1;
    TANDEM_FORMULA bool& flag(int) { return nesterov; }
  };
  template <class S>
  static TANDEM_FORMULA Step<S> step(const Settings& s, double lr, std::int64_t number,
                                     double scale) {
    const bool first = number <= 1;  // the buffer starts as g itself
    Step<S> a{};
    a.lr = S(lr);
    a.scale = S(scale);
    a.weight_decay = S(s.weight_decay);
    a.momentum = S(s.momentum);
    a.decay = S(first ? 0.0 : s.momentum);
    a.keep = S(first ? 1.0 : 1.0 - s.dampening);
    a.nesterov = s.nesterov;
    return a;
  }

  template <unsigned set, class S, class T>
  static TANDEM_FORMULA T element(const Step<S>& a, T w, T grad, T* states) {
    const T g = grad * a.scale + w * a.weight_decay;
    if constexpr (set == 0) {
      return w - a.lr * g;
    } else {
      states[0] = states[0] * a.decay + g * a.keep;
      return w - a.lr * (a.nesterov ? g + states[0] * a.momentum : states[0]);
    }
  }
};

}  // namespace tandem
