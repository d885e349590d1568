// PyTorch's triplet_margin_loss: max(0, d(a, p) - d(a, n) + margin) with d(x, y) the p-norm of
// x - y + eps over the last axis. With swap, d(a, n) is min(d(a, n), d(p, n)).
#include "engine/losses/loss_builder.h"

namespace tandem::losses {
namespace {

struct TripletMarginOptions final : KindOptions {
  double margin = 1, p = 2, eps = 1e-6;
  bool swap = false;
  void visit(KeyVisitor& v) override {
    v.key("margin", margin, at_least(0), "how much farther the negative has to be");
    v.key("p", p, between(1, 6), "exponent of the norm that gives the distance");
    v.key("eps", eps, by_default("1e-6"), between(0, 1), "added to each difference");
    v.key("swap", swap, "take the distance of positive and negative where it is smaller");
  }
};

ValueId distance(LossBuilder& b, ValueId x, ValueId y) {
  GraphBuilder& g = b.g;
  const double p = b.options<TripletMarginOptions>().p;
  const Ints last{static_cast<std::int64_t>(g.shape(x).size()) - 1};
  const ValueId e = b.plus(g.sub(x, y), b.options<TripletMarginOptions>().eps);
  if (p == 1) return g.reduce_sum(b.op("Abs", e), last, false);
  // At distance 0 a root has no slope; below the bound its gradient is 0, as in PyTorch.
  const auto above_zero = [&](ValueId sum) { return b.clip(sum, 1.2e-38, 3.4e38); };
  if (p == 2) return b.op("Sqrt", above_zero(g.reduce_sum(g.mul(e, e), last, false)));
  return b.power(above_zero(g.reduce_sum(b.power(b.op("Abs", e), p), last, false)), 1 / p);
}

std::optional<Losses> build_triplet_margin(LossBuilder& b) {
  GraphBuilder& g = b.g;
  if (!b.same_shapes(2)) return std::nullopt;
  const auto& options = b.options<TripletMarginOptions>();
  const ValueId near = distance(b, b.values[0], b.values[1]);
  ValueId far = distance(b, b.values[0], b.values[2]);
  if (options.swap) far = g.add_node("Min", {far, distance(b, b.values[1], b.values[2])});
  return Losses{b.op("Relu", b.plus(g.sub(near, far), options.margin)), {}};
}

}  // namespace

LossKind triplet_margin() {
  return {.name = "triplet_margin",
          .source = "PyTorch: triplet_margin_loss",
          .help = "max(0, d(anchor, positive) - d(anchor, negative) + margin) with d the distance",
          .values = {{"anchor", "value of the graph"},
                     {"positive", "value of the graph that is to be near the anchor"},
                     {"negative", "value of the graph that is to be far from it"}},
          .options = TripletMarginOptions{},
          .build = build_triplet_margin};
}

}  // namespace tandem::losses
