// PyTorch's cross_entropy: -log softmax(x)[y] for integer labels y, or - sum_c y_c log softmax(x)_c
// for one-hot labels and probabilities. softmax_cross_entropy() is the loss.
#include "engine/losses/loss_weights.h"

namespace tandem::losses {
namespace {

struct SoftmaxOptions final : ClassOptions {
  double label_smoothing = 0;
  void visit(KeyVisitor& v) override {
    ClassOptions::visit(v);
    v.key("label_smoothing", label_smoothing, between(0, 1),
          "part of the label spread over all classes");
  }
};

/// One-hot or soft labels over the last axis.
std::optional<Losses> of_probabilities(LossBuilder& b) {
  GraphBuilder& g = b.g;
  const ValueId logits = b.values[0];
  const Shape x = g.shape(logits);
  if (g.shape(b.labels) != x || x.size() < 2) {
    const TensorType labels{g.dtype(b.labels), g.shape(b.labels)};
    b.fail("labels as probabilities or one-hot", "the logits' shape " + to_string(x),
           to_string(labels),
           is_float(labels.dtype)
               ? "class numbers are integers: end the field's `as` with \"int64\""
               : "");
    return std::nullopt;
  }
  if (weighs_labels(b.term)) {
    b.fail("ignore_index and class_weights need integer labels");
    return std::nullopt;
  }
  const auto axis = static_cast<std::int64_t>(x.size() - 1);
  const double smoothing = b.options<SoftmaxOptions>().label_smoothing;
  ValueId y = g.cast(b.labels, g.dtype(logits));
  if (smoothing > 0)
    y = b.plus(b.times(y, 1 - smoothing), smoothing / static_cast<double>(x.back()));
  const ValueId log_p = g.add_node("LogSoftmax", {logits}, {{"axis", axis}});
  return Losses{g.neg(g.reduce_sum(g.mul(y, log_p), {axis}, false)), {}};
}

/// Smoothing under class weights w: (1 - s) loss - s / C sum_c w_c log softmax(x)_c, where the
/// label counts.
ValueId smoothed(LossBuilder& b, const ClassLabels& found, ValueId losses) {
  GraphBuilder& g = b.g;
  const DType dtype = g.dtype(found.scores);
  const auto& options = b.options<SoftmaxOptions>();
  const ValueId w = b.along_axis(options.class_weights, 1, g.shape(found.scores).size(), dtype);
  const ValueId log_p = g.add_node("LogSoftmax", {found.scores}, {{"axis", std::int64_t{1}}});
  ValueId spread = g.reduce_sum(g.mul(log_p, w), {1}, false);
  if (options.ignore_index) spread = g.mul(spread, g.cast(*label_weights(b, found, false), dtype));
  const double s = options.label_smoothing;
  return g.sub(b.times(losses, 1 - s), b.times(spread, s / static_cast<double>(found.classes)));
}

std::optional<Losses> build_softmax_cross_entropy(LossBuilder& b) {
  GraphBuilder& g = b.g;
  if (is_float(g.dtype(b.labels)) || g.shape(b.labels) == g.shape(b.values[0]))
    return of_probabilities(b);
  const auto found = b.class_labels(b.values[0]);
  if (!found) return std::nullopt;
  const auto weights = label_weights(b, *found);
  if (!weights) return std::nullopt;
  const auto& options = b.options<SoftmaxOptions>();
  const double smoothing = options.label_smoothing;
  const bool weighted_smoothing = smoothing > 0 && !options.class_weights.empty();
  ValueId losses = g.add_node("SoftmaxCrossEntropy", {found->scores, found->labels, *weights},
                              {{"label_smoothing", weighted_smoothing ? 0.0 : smoothing}});
  if (weighted_smoothing) losses = smoothed(b, *found, losses);
  return Losses{losses, *weights, found->positions};
}

}  // namespace

LossKind softmax_cross_entropy() {
  return {.name = "softmax_cross_entropy",
          .source = "PyTorch: cross_entropy",
          .help = "-log softmax(logits)[label]",
          .values = {{"logits", "value of the graph; never the output of a Softmax or Sigmoid",
                      ValueForm::logits}},
          .labels = {LabelForm::classes, "labels", "data field: class numbers or one-hot"},
          .options = SoftmaxOptions{},
          .scores = class_logits | class_scores,
          .build = build_softmax_cross_entropy};
}

}  // namespace tandem::losses
