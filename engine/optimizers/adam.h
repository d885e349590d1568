// Adam (Kingma and Ba, arXiv:1412.6980) and AdamW (Loshchilov and Hutter, arXiv:1711.05101) as in
// PyTorch: g = scale * grad + weight_decay * w; m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1
// - beta2) * g^2; w -= lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps). adamw leaves the
// gradient unchanged and first subtracts lr * weight_decay * w from w. ONNX's form adds eps to
// sqrt(v), before its correction: w -= lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) +
// eps), which is also that of PyTorch's SparseAdam, TensorFlow Addons' and MindSpore's LazyAdam.
// lazy_adam is adam for only the rows with a gradient; t counts all steps.
#pragma once

#include "engine/optimizers/moments.h"

namespace tandem {

enum class EpsilonForm { pytorch, onnx };

struct AdamSettings {
  double weight_decay = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  EpsilonForm epsilon_form = EpsilonForm::pytorch;
  bool bias_correction = true, decoupled = false;

  template <class V>
  constexpr void visit(V& v) {
    v.key("weight_decay", weight_decay, at_least(0),
          decoupled ? "decoupled" : "added to the gradient");
    v.pair("betas", "beta1", beta1, "beta2", beta2, from_below(0, 1), "decay of both moments");
    v.key({"eps", "epsilon"}, epsilon, at_least(0), "added to the root of the second moment");
    v.key("epsilon_form", epsilon_form, "pytorch|onnx",
          "eps added after (pytorch) or before (onnx) bias correction");
    v.key("bias_correction", bias_correction, "of both moments");
    v.key({"", "decoupled"}, decoupled, "");
  }
};

struct Adam : OptimizerDefaults {
  static constexpr const char* op = "AdamUpdate";
  static constexpr double flops = 14;

  using Settings = AdamSettings;
  static constexpr OptimizerName<Settings> names[] = {
      {"adam", "PyTorch's Adam"},
      {"adamw", "PyTorch's AdamW", {.weight_decay = 0.01, .decoupled = true}},
      {"lazy_adam",
       "MindSpore's LazyAdam, PyTorch's SparseAdam",
       {.epsilon_form = EpsilonForm::onnx},
       true}};
  static constexpr OptimizerState states[] = {{"exp_avg"}, {.name = "exp_avg_sq", .squares = true}};

  template <class S>
  struct Step {
    Moments<S> moments;
    S rate;         // lr / (1 - beta1^t), with the ONNX form times sqrt(1 - beta2^t)
    S root_factor;  // 1 / sqrt(1 - beta2^t); 1 with the ONNX form
    S epsilon;
  };
  template <class S>
  static TANDEM_FORMULA Step<S> step(const Settings& s, double lr, std::int64_t number,
                                     double scale) {
    const double t = static_cast<double>(number);
    const double correction1 = s.bias_correction ? 1.0 - std::pow(s.beta1, t) : 1.0;
    const double root2 = s.bias_correction ? std::sqrt(1.0 - std::pow(s.beta2, t)) : 1.0;
    const bool onnx = s.epsilon_form == EpsilonForm::onnx;
    return {moments_of<S>(s, lr, scale), S(onnx ? lr * root2 / correction1 : lr / correction1),
            S(onnx ? 1.0 : 1.0 / root2), S(s.epsilon)};
  }

  template <unsigned, class S, class T>
  static TANDEM_FORMULA T element(const Step<S>& a, T w, T grad, T* states) {
    a.moments.accumulate(w, grad, states);
    return w * a.moments.shrink -
           (states[0] * a.rate) / (formula_sqrt(states[1]) * a.root_factor + a.epsilon);
  }
};

}  // namespace tandem
