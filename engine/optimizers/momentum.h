// Momentum as ONNX (ai.onnx.preview.training.Momentum) and MindSpore (nn.Momentum) define it: g =
// scale * grad + weight_decay * w; v = momentum * v + beta * g, with beta 1 in step 1; w -= lr *
// (nesterov ? g + momentum * v : v). MindSpore has no beta, and weight_decay is ONNX's
// norm_coefficient.
#pragma once

#include "engine/optimizers/sgd.h"

namespace tandem {

struct MomentumSettings {
  double weight_decay = 0, momentum = 0.9, beta = 1;
  bool nesterov = false;

  template <class V>
  constexpr void visit(V& v) {
    v.key("weight_decay", weight_decay, at_least(0), "added to the gradient");
    v.key("momentum", momentum, between(0, 1), "decay of the velocity");
    v.key("nesterov", nesterov, "a step ahead along the velocity");
    v.key("beta", beta, at_least(0), "factor of gradients after the first");
  }
};

struct Momentum : OptimizerDefaults {
  static constexpr const char* op = "MomentumUpdate";
  static constexpr double flops = 8;

  using Settings = MomentumSettings;
  static constexpr OptimizerName<Settings> names[] = {
      {"momentum", "ONNX's and MindSpore's Momentum"}};
  static constexpr OptimizerState states[] = {{"velocity"}};

  template <class S>
  using Step = Sgd::Step<S>;
  template <class S>
  static TANDEM_FORMULA Step<S> step(const Settings& s, double lr, std::int64_t number,
                                     double scale) {
    return {S(lr),         S(scale),      S(s.weight_decay),
            S(s.momentum), S(s.momentum), S(number <= 1 ? 1.0 : s.beta),
            s.nesterov};
  }

  template <unsigned set, class S, class T>
  static TANDEM_FORMULA T element(const Step<S>& a, T w, T grad, T* states) {
    return Sgd::element<set>(a, w, grad, states);
  }
};

}  // namespace tandem
