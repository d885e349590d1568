// Focal losses (Lin et al. 2017): cross entropies times (1 - p)^gamma, p the probability of what
// the label says. Binary logits as in torchvision's sigmoid_focal_loss; classes over a softmax.
#include "engine/losses/loss_weights.h"

namespace tandem::losses {
namespace {

// Below this 1 - p, (1 - p)^gamma gets no slope: with gamma < 1 it would be infinite at 0.
constexpr double least_share = 1e-20;

void visit_gamma(KeyVisitor& v, double& gamma) {
  v.key("gamma", gamma, at_least(0), "how much less a label counts that is predicted well");
}

struct SigmoidFocalOptions final : KindOptions {
  double alpha = 0.25, gamma = 2;
  void visit(KeyVisitor& v) override {
    v.key("alpha", alpha, between(-1, 1),
          "weight of positive labels, 1 - alpha of negative ones; -1: neither");
    visit_gamma(v, gamma);
  }
};

struct SoftmaxFocalOptions final : ClassOptions {
  double gamma = 2;
  void visit(KeyVisitor& v) override {
    ClassOptions::visit(v);
    visit_gamma(v, gamma);
  }
};

ValueId modulated(LossBuilder& b, ValueId losses, ValueId others, double gamma) {
  if (gamma == 0) return losses;
  return b.g.mul(losses, b.power(b.clip(others, least_share, 1), gamma));
}

// 1 - p = (1 - z) sigmoid(x) + z sigmoid(-x)
std::optional<Losses> build_binary(LossBuilder& b) {
  GraphBuilder& g = b.g;
  const ValueId x = b.values[0];
  const auto z = b.labels_like(x);
  if (!z) return std::nullopt;
  const ValueId not_z = b.one_minus(*z);
  const ValueId others =
      g.add(g.mul(not_z, b.op("Sigmoid", x)), g.mul(*z, b.op("Sigmoid", g.neg(x))));
  const auto& [alpha, gamma] = b.options<SigmoidFocalOptions>();
  ValueId losses = modulated(b, logit_cross_entropy(b, x, *z), others, gamma);
  if (alpha >= 0) losses = g.mul(losses, g.add(b.times(*z, alpha), b.times(not_z, 1 - alpha)));
  return Losses{losses, {}};
}

std::optional<Losses> build_classes(LossBuilder& b) {
  GraphBuilder& g = b.g;
  const auto found = b.class_labels(b.values[0]);
  if (!found) return std::nullopt;
  const auto weights = label_weights(b, *found), counted = label_weights(b, *found, false);
  if (!weights || !counted) return std::nullopt;
  const ValueId entropy =
      g.add_node("SoftmaxCrossEntropy", {found->scores, found->labels, *counted});
  const double gamma = b.options<SoftmaxFocalOptions>().gamma;
  ValueId losses = modulated(b, entropy, b.one_minus(b.op("Exp", g.neg(entropy))), gamma);
  if (*weights) losses = g.mul(losses, g.cast(*weights, g.dtype(losses)));
  return Losses{losses, *weights, found->positions};
}

}  // namespace

LossKind sigmoid_focal() {
  return {.name = "sigmoid_focal",
          .source = "torchvision: sigmoid_focal_loss",
          .help =
              "alpha_z (1 - p)^gamma times the binary cross entropy; p is the probability of "
              "label z, alpha_1 is alpha, alpha_0 is 1 - alpha",
          .values = {{"logits", "value of the graph; never the output of a Softmax or Sigmoid",
                      ValueForm::logits}},
          .labels = {LabelForm::zero_to_one, "labels", "data field: 0 to 1"},
          .options = SigmoidFocalOptions{},
          .scores = binary_logits | binary_scores,
          .build = build_binary};
}

LossKind softmax_focal() {
  return {.name = "softmax_focal",
          .source = "Lin et al. 2017, over a softmax; class_weights are its alpha",
          .help = "(1 - p)^gamma (-log p) with p = softmax(logits)[label]",
          .values = {{"logits", "value of the graph; never the output of a Softmax or Sigmoid",
                      ValueForm::logits}},
          .labels = {LabelForm::classes, "labels", "data field: class numbers"},
          .options = SoftmaxFocalOptions{},
          .scores = class_logits | class_scores,
          .build = build_classes};
}

}  // namespace tandem::losses
