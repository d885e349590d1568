// sum x^2 of any value, without a factor 1/2: a penalty. A parameter has no batch.
#include "engine/losses/loss_builder.h"

namespace tandem::losses {
namespace {

std::optional<Losses> build_sum_of_squares(LossBuilder& b) {
  const ValueId x = b.values[0];
  if (!is_float(b.g.dtype(x))) {
    b.fail("\"" + b.term.values[0] + "\" holds no numbers", "a float type",
           std::string(name_of(b.g.dtype(x))));
    return std::nullopt;
  }
  return Losses{.losses = b.g.mul(x, x),
                .has_batch = b.g.graph().value(x).kind != ValueKind::state};
}

}  // namespace

LossKind sum_of_squares() {
  return {.name = "sum_of_squares",
          .source = "a penalty on any value",
          .help = "x^2",
          .values = {{"of", "value of the graph"}},
          .sample_weights = false,
          .build = build_sum_of_squares};
}

}  // namespace tandem::losses
