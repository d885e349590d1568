// PyTorch's l1_loss: |x - y|. Where both are equal, the gradient is 0.
#include "engine/losses/loss_builder.h"

namespace tandem::losses {
namespace {

std::optional<Losses> build_mae(LossBuilder& b) {
  const auto y = b.labels_like(b.values[0]);
  if (!y) return std::nullopt;
  return Losses{b.op("Abs", b.g.sub(b.values[0], *y)), {}};
}

}  // namespace

LossKind mae() {
  return {.name = "mae",
          .source = "PyTorch: l1_loss",
          .help = "|prediction - target|",
          .values = {{"predictions", "value of the graph"}},
          .labels = {LabelForm::numbers, "targets", "data field"},
          .scores = number_scores,
          .build = build_mae};
}

}  // namespace tandem::losses
