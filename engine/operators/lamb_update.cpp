// LAMB (You et al., arXiv:1904.00962, algorithm 2) with g = scale * grad: m = beta1 * m + (1 -
// beta1) * g, v = beta2 * v + (1 - beta2) * g^2, u = m^ / (sqrt(v^) + epsilon) + weight_decay *
// master, master -= lr * r * u with r = |master| / |u| over the whole tensor, 1 where either norm
// is 0, at most trust_clip where that is not 0. `skip` keeps all.
#include "engine/operators/operators.h"
#include "engine/operators/update.h"

namespace tandem::operators {
namespace {

void require_settings(const NodeView& view) {
  for (const char* name : {"beta1", "beta2"}) {
    const double beta = view.attributes().number(name);
    if (beta >= 0.0 && beta < 1.0) continue;
    view.fail(std::string(name) + " is out of range", "0 <= beta < 1", std::to_string(beta));
  }
  for (const char* name : {"epsilon", "weight_decay", "trust_clip"})
    require_not_negative(view, name);
  require_flag(view, "bias_correction");
}

}  // namespace

UpdateKind lamb_kind() {
  return {.op = "LambUpdate",
          .attributes = {{"beta1", 0.9},
                         {"beta2", 0.999},
                         {"epsilon", 1e-6},
                         {"weight_decay", 0.0},
                         {"bias_correction", std::int64_t{1}},
                         {"trust_clip", 0.0}},
          .states = {{.name = "exp_avg"}, {.name = "exp_avg_sq", .squares = true}},
          .require_settings = require_settings,
          .whole_tensor = true,
          .flops = 28};
}

Operator lamb_update() { return update_operator(lamb_kind()); }

}  // namespace tandem::operators
