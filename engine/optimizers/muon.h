// Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon) as in PyTorch, for matrices:
// b = momentum * b + (1 - momentum) * scale * grad; d = nesterov ? momentum * b + (1 - momentum) *
// scale * grad : b; w = (1 - lr * weight_decay) * w - lr * ratio * O(d). O moves the singular
// values of d near to 1: X = d / max(|d|, eps) with the Frobenius norm, then ns_steps times A = X
// X^T, X = a X + (b A + c A^2) X. `ratio` is sqrt(max(1, outputs / inputs)); or 0.2
// sqrt(max(outputs, inputs)), by which the step has the root mean square of AdamW's; or
// sqrt(outputs / inputs).
#pragma once

#include "engine/optimizers/formula.h"

namespace tandem {

struct ComposedStep;
struct ComposedResult;

enum class MuonRate { original, match_rms_adamw, spectral_unclamped };

struct MuonSettings {
  double weight_decay = 0.1, momentum = 0.95;
  bool nesterov = true;
  double a = 3.4445, b = -4.7750, c = 2.0315;
  double epsilon = 1e-7, steps = 5;
  MuonRate adjust_rate = MuonRate::original;
  bool flatten = false;

  template <class V>
  constexpr void visit(V& v) {
    v.key("weight_decay", weight_decay, at_least(0), "decoupled");
    v.key("momentum", momentum, from_below(0, 1), "decay of the mean of gradients");
    v.key("nesterov", nesterov, "a step ahead along this mean");
    v.triple("ns_coefficients", "ns_a", a, "ns_b", b, "ns_c", c, between(-100, 100),
             "of the polynomial that orthogonalises");
    v.key({"eps", "epsilon"}, epsilon, at_least(0), "least norm of what is orthogonalised");
    v.key("ns_steps", steps, between(1, 99), "how often the polynomial is applied");
    v.key("adjust_lr_fn", adjust_rate, "original|match_rms_adamw|spectral_unclamped",
          "how the rate follows a matrix's shape: sqrt(max(1, outputs / inputs)); 0.2 "
          "sqrt(max(outputs, inputs)), for rates of AdamW; sqrt(outputs / inputs)");
    v.key("flatten", flatten,
          "weights of convolutions are taken as matrices [outputs, all others]");
  }
};

struct Muon : OptimizerDefaults {
  static constexpr const char* op = "MuonUpdate";
  static constexpr double flops = 0;
  static constexpr bool whole_tensor = true;

  using Settings = MuonSettings;
  static constexpr OptimizerName<Settings> names[] = {
      {"muon", "Jordan et al. 2024, as torch.optim.Muon"}};
  static constexpr OptimizerState states[] = {{"momentum_buffer"}};
  static constexpr SettingsProblem problem(const Settings& s) {
    const auto whole = static_cast<int>(s.steps);
    if (static_cast<double>(whole) == s.steps) return {};
    return {"ns_steps", "this is a number of steps, without a fraction"};
  }
  static constexpr const char* needs(const Settings& s, std::size_t axes) {
    if (axes == 2 || (axes > 2 && s.flatten)) return nullptr;
    return axes > 2 ? "a matrix, or flatten = true" : "a matrix";
  }
  static ComposedResult compose(const Settings& settings, ComposedStep& step);
};

}  // namespace tandem
