// The hinge loss: max(0, margin - (2 z - 1) x) of a score x and a label z of 0 or 1; Keras's hinge.
#include "engine/losses/loss_builder.h"

namespace tandem::losses {
namespace {

struct HingeOptions final : KindOptions {
  double margin = 1;
  void visit(KeyVisitor& v) override {
    v.key("margin", margin, "margin from which a right score costs nothing");
  }
};

std::optional<Losses> build_hinge(LossBuilder& b) {
  const auto z = b.labels_like(b.values[0]);
  if (!z) return std::nullopt;
  const ValueId sign = b.plus(b.times(*z, 2), -1);
  const ValueId margin = b.g.scalar(b.options<HingeOptions>().margin, b.g.dtype(*z));
  return Losses{b.op("Relu", b.g.sub(margin, b.g.mul(sign, b.values[0]))), {}};
}

}  // namespace

LossKind hinge() {
  return {.name = "hinge",
          .source = "Keras: Hinge",
          .help = "max(0, margin - (2 label - 1) prediction)",
          .values = {{"predictions", "value of the graph"}},
          .labels = {LabelForm::zero_to_one, "labels", "data field: 0 to 1"},
          .options = HingeOptions{},
          .scores = binary_scores,
          .build = build_hinge};
}

}  // namespace tandem::losses
