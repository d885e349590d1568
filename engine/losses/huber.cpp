// PyTorch's huber_loss, with e = x - y: e^2 / 2 where |e| <= delta, else delta (|e| - delta / 2).
#include "engine/losses/loss_builder.h"

namespace tandem::losses {
namespace {

struct HuberOptions final : KindOptions {
  double delta = 1;
  void visit(KeyVisitor& v) override {
    v.key("delta", delta, at_least(1e-30), "where the parabola ends");
  }
};

// c (e - c / 2) with c = min(max(e, -delta), delta): as exact as e near 0.
std::optional<Losses> build_huber(LossBuilder& b) {
  const auto y = b.labels_like(b.values[0]);
  if (!y) return std::nullopt;
  const double delta = b.options<HuberOptions>().delta;
  const ValueId e = b.g.sub(b.values[0], *y);
  const ValueId c = b.clip(e, -delta, delta);
  return Losses{b.g.mul(c, b.g.sub(e, b.times(c, 0.5))), {}};
}

}  // namespace

LossKind huber() {
  return {
      .name = "huber",
      .source = "PyTorch: huber_loss",
      .help = "e^2 / 2 where |e| <= delta, else delta (|e| - delta / 2); e = prediction - target",
      .values = {{"predictions", "value of the graph"}},
      .labels = {LabelForm::numbers, "targets", "data field"},
      .options = HuberOptions{},
      .scores = number_scores,
      .build = build_huber};
}

}  // namespace tandem::losses
