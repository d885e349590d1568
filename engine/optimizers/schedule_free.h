// Schedule-free AdamW (Defazio et al., arXiv:2405.15682, with the code's r and powers of the rate).
// Three sequences: gradients are those of y, which trains; z takes the steps; x, the weights that
// are used, is a weighted mean of z. With g = scale * grad and m = max(lr so far): v = beta2 * v +
// (1 - beta2) * g^2; d = g / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay * y; z -= lr * d; c =
// t^r m^p / (the sum of t^r m^p over all steps); x = (1 - c) x + c z; y = (1 - beta1) z + beta1 x.
// Kept are y, as the parameter, and lead = y - x, of which z is x + lead / (1 - beta1): y = y + c
// beta1 / (1 - beta1) lead - lr (1 - beta1 (1 - c)) d, lead = (1 - c) (lead - lr (1 - beta1) d).
#pragma once

#include "engine/optimizers/formula.h"

namespace tandem {

struct ComposedStep;
struct ComposedResult;

struct ScheduleFreeSettings {
  double weight_decay = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double r = 0, weight_lr_power = 2;

  template <class V>
  constexpr void visit(V& v) {
    v.key("weight_decay", weight_decay, at_least(0), "decoupled, of the weights that train");
    v.pair("betas", "beta1", beta1, "beta2", beta2, from_below(0, 1),
           "how much of the mean is in the weights that train; decay of the second moment");
    v.key({"eps", "epsilon"}, epsilon, at_least(0), "added to the root of the second moment");
    v.key("r", r, at_least(0), "step t counts t^r in the mean");
    v.key("weight_lr_power", weight_lr_power, at_least(0),
          "and the largest rate so far to this power: steps of a warm-up count less");
  }
};

struct ScheduleFree : OptimizerDefaults {
  static constexpr const char* op = "ScheduleFreeUpdate";
  static constexpr double flops = 18;

  using Settings = ScheduleFreeSettings;
  static constexpr OptimizerName<Settings> names[] = {
      {.name = "schedule_free_adamw", .source = "Defazio et al. 2024", .lr = 2.5e-3}};
  /// effective_steps is (the sum of weights) / (the weight of the last step): in float32 it counts
  /// on where that sum would not.
  static constexpr OptimizerState states[] = {
      {.name = "lead", .lead = true},
      {.name = "exp_avg_sq", .squares = true},
      {.name = "effective_steps", .shape = StateShape::number},
      {.name = "largest_lr", .shape = StateShape::number}};
  template <class S>
  static constexpr bool takes_rows(const S&) {
    return false;
  }
  static ComposedResult compose(const Settings& settings, ComposedStep& step);
};

}  // namespace tandem
