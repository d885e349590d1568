// MONAI's DiceLoss: 1 - (2 sum(p t) + smooth_nr) / (sum(p) + sum(t) + smooth_dr) for each sample
// and channel, summed over all later axes. p is the sigmoid of logits [batch, channels, ..], or
// their softmax over the channels; t has their shape, 0 to 1.
#include "engine/losses/loss_builder.h"

namespace tandem::losses {
namespace {

std::optional<Losses> build_dice(LossBuilder& b) {
  GraphBuilder& g = b.g;
  const ValueId x = b.values[0];
  const Shape shape = g.shape(x);
  if (shape.size() < 3) {
    b.fail("\"" + b.term.values[0] + "\" has no extents behind its channels",
           "logits as [batch, channels, ..]", to_string(shape));
    return std::nullopt;
  }
  const auto t = b.labels_like(x);
  if (!t) return std::nullopt;
  const bool over_channels = b.term.text("activation") == "softmax";
  const ValueId p =
      over_channels ? g.add_node("Softmax", {x}, {{"axis", std::int64_t{1}}}) : b.op("Sigmoid", x);
  Ints behind;
  for (std::size_t i = 2; i < shape.size(); ++i) behind.push_back(static_cast<std::int64_t>(i));
  const auto sum = [&](ValueId v) { return g.reduce_sum(v, behind, false); };
  const bool squared = b.term.flag("squared_pred");
  const ValueId in_both = b.plus(b.times(sum(g.mul(p, *t)), 2), b.term.number("smooth_nr"));
  const ValueId in_each =
      squared ? g.add(sum(g.mul(p, p)), sum(g.mul(*t, *t))) : g.add(sum(p), sum(*t));
  return Losses{b.one_minus(g.div(in_both, b.plus(in_each, b.term.number("smooth_dr")))), {}};
}

}  // namespace

LossKind dice() {
  return {.name = "dice",
          .source = "MONAI: DiceLoss",
          .help =
              "1 - (2 sum(p t) + smooth_nr) / (sum(p) + sum(t) + smooth_dr) for each sample and "
              "channel, over all axes behind; p of the logits, t the labels",
          .values = {{"logits", "value of the graph; never the output of a Softmax or Sigmoid",
                      ValueForm::logits}},
          .labels = {LabelForm::zero_to_one, "labels", "data field: 0 to 1"},
          .options = {{"activation", string_value, "\"sigmoid\"", "what makes p of the logits",
                       -1e300, 1e300, "sigmoid|softmax"},
                      {"squared_pred", boolean_value, "false", "sums of squares below the line"},
                      {"smooth_nr", number_value, "1e-5", "above the line", 0},
                      {"smooth_dr", number_value, "1e-5", "below the line", 0}},
          .build = build_dice};
}

}  // namespace tandem::losses
