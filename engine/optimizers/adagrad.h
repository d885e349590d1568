// PyTorch's Adagrad (Duchi et al. 2011): g = scale * grad + weight_decay * w; sum += g^2; w -= rate
// * g / (sqrt(sum) + eps) with rate = lr / (1 + (t - 1) * lr_decay).
#pragma once

#include "engine/optimizers/formula.h"

namespace tandem {

struct AdagradSettings {
  double weight_decay = 0, epsilon = 1e-10, lr_decay = 0, initial_accumulator = 0;

  template <class V>
  constexpr void visit(V& v) {
    v.key("weight_decay", weight_decay, at_least(0), "added to the gradient");
    v.key({"eps", "epsilon"}, epsilon, at_least(0), "added to the root of the sum");
    v.key("lr_decay", lr_decay, at_least(0), "lr / (1 + (step - 1) lr_decay)");
    v.key({"initial_accumulator", ""}, initial_accumulator, at_least(0),
          "where the sum of squares starts");
  }
};

/// What adagrad and rowwise_adagrad have in common.
struct AdagradDefaults : OptimizerDefaults {
  using Settings = AdagradSettings;
  static constexpr bool keeps_still(const Settings& s) { return s.weight_decay == 0; }
  static constexpr bool takes_rows(const Settings& s) { return s.weight_decay == 0; }
  static constexpr const char* rows_need = "without weight_decay";

  template <class S>
  struct Step {
    S scale, weight_decay, rate, epsilon;
  };
  template <class S>
  static TANDEM_FORMULA Step<S> step(const Settings& s, double lr, std::int64_t number,
                                     double scale) {
    const double rate = lr / (1.0 + static_cast<double>(number - 1) * s.lr_decay);
    return {S(scale), S(s.weight_decay), S(rate), S(s.epsilon)};
  }
};

struct Adagrad : AdagradDefaults {
  static constexpr const char* op = "AdagradUpdate";
  static constexpr double flops = 7;
  static constexpr OptimizerName<Settings> names[] = {{"adagrad", "PyTorch's Adagrad"}};
  static constexpr OptimizerState states[] = {
      {.name = "sum", .start = "initial_accumulator", .squares = true}};

  template <unsigned, class S, class T>
  static TANDEM_FORMULA T element(const Step<S>& a, T w, T grad, T* states) {
    const T g = grad * a.scale + w * a.weight_decay;
    states[0] = states[0] + g * g;
    return w - (g * a.rate) / (formula_sqrt(states[0]) + a.epsilon);
  }
};

}  // namespace tandem
