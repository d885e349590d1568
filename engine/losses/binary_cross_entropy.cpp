// PyTorch's binary_cross_entropy_with_logits: softplus(x) - x z; with pos_weight p:
// (1 + (p - 1) z) softplus(-x) + (1 - z) x.
#include "engine/losses/loss_weights.h"

namespace tandem::losses {
namespace {

std::optional<Losses> build_binary_cross_entropy(LossBuilder& b) {
  GraphBuilder& g = b.g;
  const ValueId x = b.values[0];
  const auto z = b.labels_like(x);
  if (!z) return std::nullopt;
  const auto weight = pos_weight(b, x);
  if (!weight) return std::nullopt;
  if (!*weight) return Losses{logit_cross_entropy(b, x, *z), {}};
  const ValueId one = g.scalar(1, g.dtype(x));
  const ValueId factor = g.add(one, g.mul(g.sub(*weight, one), *z));
  return Losses{g.add(g.mul(factor, b.op("Softplus", g.neg(x))), g.mul(g.sub(one, *z), x)), {}};
}

}  // namespace

LossKind binary_cross_entropy() {
  return {.name = "binary_cross_entropy",
          .source = "PyTorch: binary_cross_entropy_with_logits",
          .help = "-(z log p + (1 - z) log(1 - p)) with p = sigmoid(logit) and label z",
          .values = {{"logits", "value of the graph; never the output of a Softmax or Sigmoid",
                      ValueForm::logits}},
          .labels = {LabelForm::zero_to_one, "labels", "data field: 0 to 1"},
          .options = PositiveOptions{},
          .scores = binary_logits | binary_scores,
          .build = build_binary_cross_entropy};
}

}  // namespace tandem::losses

namespace tandem {

ValueId logit_cross_entropy(LossBuilder& b, ValueId x, ValueId z) {
  return b.g.sub(b.op("Softplus", x), b.g.mul(x, z));
}

}  // namespace tandem
