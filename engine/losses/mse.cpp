// PyTorch's mse_loss: (x - y)^2.
#include "engine/losses/loss_builder.h"

namespace tandem::losses {
namespace {

std::optional<Losses> build_mse(LossBuilder& b) {
  const auto y = b.labels_like(b.values[0]);
  if (!y) return std::nullopt;
  const ValueId difference = b.g.sub(b.values[0], *y);
  return Losses{b.g.mul(difference, difference), {}};
}

}  // namespace

LossKind mse() {
  return {.name = "mse",
          .source = "PyTorch: mse_loss",
          .help = "(prediction - target)^2",
          .values = {{"predictions", "value of the graph"}},
          .labels = {LabelForm::numbers, "targets", "data field"},
          .scores = number_scores,
          .build = build_mse};
}

}  // namespace tandem::losses
