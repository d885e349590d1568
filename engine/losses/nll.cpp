// PyTorch's nll_loss: -log p[y], from logarithms of probabilities.
#include "engine/losses/loss_weights.h"

namespace tandem::losses {
namespace {

std::optional<Losses> build_nll(LossBuilder& b) {
  const auto found = b.class_labels(b.values[0]);
  if (!found) return std::nullopt;
  const auto weights = label_weights(b, *found);
  if (!weights) return std::nullopt;
  return Losses{b.g.add_node("NegativeLogLikelihood", {found->scores, found->labels, *weights}),
                *weights, found->positions};
}

}  // namespace

LossKind nll() {
  return {.name = "nll",
          .source = "PyTorch: nll_loss",
          .help = "-log_probabilities[label]",
          .values = {{"log_probabilities", "value of the graph, such as the output of a LogSoftmax",
                      ValueForm::log_probabilities}},
          .labels = {LabelForm::classes, "labels", "data field: class numbers"},
          .options = ClassOptions{},
          .scores = class_logits | class_scores,
          .build = build_nll};
}

}  // namespace tandem::losses
