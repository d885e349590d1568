// PyTorch's smooth_l1_loss, with e = x - y: e^2 / (2 beta) where |e| < beta, else |e| - beta / 2.
#include "engine/losses/loss_builder.h"

namespace tandem::losses {
namespace {

struct SmoothL1Options final : KindOptions {
  double beta = 1;
  void visit(KeyVisitor& v) override {
    v.key("beta", beta, at_least(0), "where the parabola ends; 0: mae");
  }
};

// c (e - c / 2) / beta with c = min(max(e, -beta), beta): as exact as e near 0.
std::optional<Losses> build_smooth_l1(LossBuilder& b) {
  const auto y = b.labels_like(b.values[0]);
  if (!y) return std::nullopt;
  const double beta = b.options<SmoothL1Options>().beta;
  const ValueId e = b.g.sub(b.values[0], *y);
  if (beta < 1e-30) return Losses{b.op("Abs", e), {}};
  const ValueId c = b.clip(e, -beta, beta);
  return Losses{b.g.mul(b.times(c, 1 / beta), b.g.sub(e, b.times(c, 0.5))), {}};
}

}  // namespace

LossKind smooth_l1() {
  return {.name = "smooth_l1",
          .source = "PyTorch: smooth_l1_loss",
          .help = "e^2 / (2 beta) where |e| < beta, else |e| - beta / 2; e = prediction - target",
          .values = {{"predictions", "value of the graph"}},
          .labels = {LabelForm::numbers, "targets", "data field"},
          .options = SmoothL1Options{},
          .scores = number_scores,
          .build = build_smooth_l1};
}

}  // namespace tandem::losses
