// PyTorch's Adam and (decoupled) AdamW with g = scale * grad: m = beta1 * m + (1 - beta1) * g,
// v = beta2 * v + (1 - beta2) * g^2, master = master - lr * m^ / (sqrt(v^) + epsilon). `skip` keeps
// all.
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
  require_not_negative(view, "epsilon");
  require_not_negative(view, "weight_decay");
  require_flag(view, "decoupled");
  require_flag(view, "bias_correction");
  const std::string& form = view.attributes().text("epsilon_form");
  if (form != "pytorch" && form != "onnx") {
    view.fail("epsilon_form is unknown", "\"pytorch\" or \"onnx\"", form);
  }
}

}  // namespace

UpdateKind adam_kind() {
  return {.op = "AdamUpdate",
          .attributes = {{"beta1", 0.9},
                         {"beta2", 0.999},
                         {"epsilon", 1e-8},
                         {"weight_decay", 0.0},
                         {"decoupled", std::int64_t{0}},
                         {"bias_correction", std::int64_t{1}},
                         {"epsilon_form", std::string("pytorch")}},
          .states = {{.name = "exp_avg"}, {.name = "exp_avg_sq", .squares = true}},
          .require_settings = require_settings,
          .flops = 14};
}

Operator adam_update() { return update_operator(adam_kind()); }

}  // namespace tandem::operators
