// PyTorch's SGD with g = scale * grad + weight_decay * master: buffer = momentum * buffer + (1 -
// dampening) * g (g in step 1), g = g + momentum * buffer (nesterov) or buffer, master = master -
// lr * g. `skip` keeps all.
#include "engine/operators/operators.h"
#include "engine/operators/update.h"

namespace tandem::operators {
namespace {

void require_settings(const NodeView& view) {
  require_not_negative(view, "momentum");
  require_between(view, "dampening", 0.0, 1.0);
  require_flag(view, "nesterov");
  require_not_negative(view, "weight_decay");
  const Attributes& attributes = view.attributes();
  if (attributes.flag("nesterov") &&
      (attributes.number("momentum") == 0.0 || attributes.number("dampening") != 0.0)) {
    view.fail("nesterov does not fit", "momentum above 0 and dampening 0",
              "momentum " + std::to_string(attributes.number("momentum")) + ", dampening " +
                  std::to_string(attributes.number("dampening")));
  }
}

}  // namespace

UpdateKind sgd_kind() {
  return {.op = "SgdUpdate",
          .attributes = {{"momentum", 0.0},
                         {"dampening", 0.0},
                         {"nesterov", std::int64_t{0}},
                         {"weight_decay", 0.0}},
          .states = {{.name = "momentum_buffer"}},
          .require_settings = require_settings,
          .has_states = [](const Attributes& a) { return a.number("momentum") != 0.0; },
          .keeps_still =
              [](const Attributes& a) {
                return a.number("momentum") == 0.0 && a.number("weight_decay") == 0.0;
              },
          .flops = 6};
}

Operator sgd_update() { return update_operator(sgd_kind()); }

}  // namespace tandem::operators
