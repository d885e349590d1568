// PyTorch's multi_margin_loss: sum_{c != y} max(0, margin - x_y + x_c)^p / C of scores x of C
// classes.
#include <cmath>

#include "engine/losses/loss_builder.h"

namespace tandem::losses {
namespace {

struct MultiMarginOptions final : KindOptions {
  double margin = 1, p = 1;
  void visit(KeyVisitor& v) override {
    v.key("margin", margin, at_least(0), "margin from which a right score costs nothing");
    v.key("p", p, between(1, 2), "exponent of the loss of a class");
  }
};

// The sum includes c = y, which adds margin^p: that is subtracted, and its gradient is 0.
std::optional<Losses> build_multi_margin(LossBuilder& b) {
  GraphBuilder& g = b.g;
  const auto found = b.class_labels(b.values[0]);
  if (!found) return std::nullopt;
  const auto& [margin, p] = b.options<MultiMarginOptions>();
  const ValueId minus_own =
      g.add_node("NegativeLogLikelihood", {found->scores, found->labels});  // -x_y
  Shape column = g.shape(minus_own);
  column.insert(column.begin() + 1, 1);
  const ValueId above = b.plus(g.add(found->scores, g.reshape(minus_own, column)), margin);
  const ValueId costs = b.power(b.op("Relu", above), p);
  const ValueId sum = b.plus(g.reduce_sum(costs, {1}, false), -std::pow(margin, p));
  return Losses{b.times(sum, 1 / static_cast<double>(found->classes)), {}, found->positions};
}

}  // namespace

LossKind multi_margin() {
  return {.name = "multi_margin",
          .source = "PyTorch: multi_margin_loss",
          .help =
              "the sum of max(0, margin - own score + score)^p over the other classes, divided "
              "by the number of classes",
          .values = {{"predictions", "value of the graph"}},
          .labels = {LabelForm::classes, "labels", "data field: class numbers"},
          .options = MultiMarginOptions{},
          .scores = class_scores,
          .build = build_multi_margin};
}

}  // namespace tandem::losses
