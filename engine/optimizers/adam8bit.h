// Adam and AdamW with states of 8 bits (Dettmers et al., arXiv:2110.02861), as in bitsandbytes: a
// step decodes the moments of a block of 256 elements, takes the step of Adam with them, and
// encodes what they have become by the largest absolute value of each block. Parameters below 4096
// elements keep states of 32 bits.
#pragma once

#include "engine/optimizers/adam.h"

namespace tandem {

struct Adam8bit : OptimizerDefaults {
  static constexpr const char* op = "Adam8bitUpdate";
  static constexpr double flops = 30;

  using Settings = AdamSettings;
  using Formula = Adam;
  /// A smaller parameter is updated by the formula's own kind.
  static constexpr std::int64_t least_elements = 4096;
  static constexpr OptimizerName<Settings> names[] = {
      {"adam8bit", "bitsandbytes' Adam8bit"},
      {"adamw8bit", "bitsandbytes' AdamW8bit", {.weight_decay = 0.01, .decoupled = true}}};
  static constexpr OptimizerState states[] = {
      {.name = "exp_avg", .form = StateForm::signed_bytes},
      {.name = "exp_avg_sq", .squares = true, .form = StateForm::positive_bytes},
      {.name = "exp_avg_scale", .shape = StateShape::one_per_block},
      {.name = "exp_avg_sq_scale", .shape = StateShape::one_per_block, .squares = true}};
  template <class S>
  static constexpr bool takes_rows(const S&) {
    return false;
  }
};

}  // namespace tandem
