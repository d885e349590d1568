// MONAI's DiceLoss: 1 - (2 sum(p t) + smooth_nr) / (sum(p) + sum(t) + smooth_dr) for each sample
// and channel, summed over all later axes. p is the sigmoid of logits [batch, channels, ..], or
// their softmax over the channels; t has their shape, 0 to 1.
#include "engine/losses/loss_builder.h"

namespace tandem::losses {
namespace {

struct DiceOptions final : KindOptions {
  bool sigmoid = true;  // else softmax
  bool squared_pred = false;
  double smooth_nr = 1e-5, smooth_dr = 1e-5;
  void visit(KeyVisitor& v) override {
    v.key("activation", true_or_false(sigmoid, "sigmoid|softmax"),
          "the function that computes p from the logits");
    v.key("squared_pred", squared_pred, "sums of squares in the denominator");
    v.key("smooth_nr", smooth_nr, by_default("1e-5"), at_least(0), "added to the numerator");
    v.key("smooth_dr", smooth_dr, by_default("1e-5"), at_least(0), "added to the denominator");
  }
};

std::optional<Losses> build_dice(LossBuilder& b) {
  GraphBuilder& g = b.g;
  const ValueId x = b.values[0];
  const Shape shape = g.shape(x);
  if (shape.size() < 3) {
    b.fail("\"" + b.term.values[0] + "\" has no axes after its channels",
           "logits as [batch, channels, ..]", to_string(shape));
    return std::nullopt;
  }
  const auto t = b.labels_like(x);
  if (!t) return std::nullopt;
  const auto& options = b.options<DiceOptions>();
  const ValueId p = options.sigmoid ? b.op("Sigmoid", x)
                                    : g.add_node("Softmax", {x}, {{"axis", std::int64_t{1}}});
  Ints behind;
  for (std::size_t i = 2; i < shape.size(); ++i) behind.push_back(static_cast<std::int64_t>(i));
  const auto sum = [&](ValueId v) { return g.reduce_sum(v, behind, false); };
  const ValueId in_both = b.plus(b.times(sum(g.mul(p, *t)), 2), options.smooth_nr);
  const ValueId in_each =
      options.squared_pred ? g.add(sum(g.mul(p, p)), sum(g.mul(*t, *t))) : g.add(sum(p), sum(*t));
  return Losses{b.one_minus(g.div(in_both, b.plus(in_each, options.smooth_dr))), {}};
}

}  // namespace

LossKind dice() {
  return {.name = "dice",
          .source = "MONAI: DiceLoss",
          .help =
              "1 - (2 sum(p t) + smooth_nr) / (sum(p) + sum(t) + smooth_dr) for each sample and "
              "channel, over all axes after it; p: probabilities from the logits, t: the labels",
          .values = {{"logits", "value of the graph; never the output of a Softmax or Sigmoid",
                      ValueForm::logits}},
          .labels = {LabelForm::zero_to_one, "labels", "data field: 0 to 1"},
          .options = DiceOptions{},
          .build = build_dice};
}

}  // namespace tandem::losses
