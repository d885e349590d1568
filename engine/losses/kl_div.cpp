// PyTorch's kl_div, by element: t (log t - x) with x the logarithm of a predicted probability and t
// the true one; 0 where t = 0. With log_target the labels are log t.
#include "engine/losses/loss_builder.h"

namespace tandem::losses {
namespace {

struct KlDivOptions final : KindOptions {
  bool log_target = false;
  void visit(KeyVisitor& v) override {
    v.key("log_target", log_target, "the targets are logarithms of probabilities");
  }
};

std::optional<Losses> build_kl_div(LossBuilder& b) {
  const ValueId x = b.values[0];
  const auto y = b.labels_like(x);
  if (!y) return std::nullopt;
  if (b.options<KlDivOptions>().log_target)
    return Losses{b.g.mul(b.op("Exp", *y), b.g.sub(*y, x)), {}};
  constexpr double least = 1.2e-38;  // a normal float32, so that 0 log 0 is 0
  const ValueId log_y = b.op("Log", b.clip(*y, least, 3e38));
  return Losses{b.g.mul(*y, b.g.sub(log_y, x)), {}};
}

// PyTorch's kl_div gives nan for targets below 0.
bool has_probabilities(const LossTerm& term) { return !term.options.as<KlDivOptions>().log_target; }

}  // namespace

LossKind kl_div() {
  return {.name = "kl_div",
          .source = "PyTorch: kl_div",
          .help =
              "target (log(target) - log_probability); the divergence is its sum over the "
              "classes, which reduction = \"batchmean\" makes",
          .values = {{"log_probabilities", "value of the graph, such as the output of a LogSoftmax",
                      ValueForm::log_probabilities}},
          .labels = {LabelForm::numbers, "targets", "data field"},
          .options = KlDivOptions{},
          .refuses_negative_labels = has_probabilities,
          .build = build_kl_div};
}

}  // namespace tandem::losses
