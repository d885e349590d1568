// PyTorch's SGD with g = scale * grad + weight_decay * master: buffer = momentum * buffer + (1 -
// dampening) * g (g in step 1), g = g + momentum * buffer (nesterov) or buffer, master = master -
// lr * g. `skip` keeps all.
#include "engine/operators/operators.h"
#include "engine/operators/update.h"

namespace tandem::operators {

std::vector<AttributeSpec> sgd_attributes() {
  return {{"momentum", 0.0},
          {"dampening", 0.0},
          {"nesterov", std::int64_t{0}},
          {"weight_decay", 0.0},
          weight_attribute()};
}

void require_sgd_settings(const NodeView& view) {
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

std::vector<TensorType> sgd_outputs(const NodeView& view, std::size_t first) {
  const TensorType master = require_master_and_grad(view, first);
  const bool buffer = view.has_input(first + 2);
  if (buffer) require_type(view, first + 2, master);
  if (buffer != (view.attributes().number("momentum") != 0.0)) {
    view.fail("momentum and the momentum buffer do not fit",
              "a momentum_buffer exactly where momentum is not 0",
              buffer ? "a buffer with momentum 0" : "no buffer");
  }
  return {master, {master.dtype, buffer ? master.shape : Shape{0}}};
}

namespace {

std::vector<TensorType> infer(const NodeView& view) {
  require_sgd_settings(view);
  require_update_scalars(view, 3);
  std::vector<TensorType> outputs = sgd_outputs(view, 0);
  add_weight_output(view, 7, outputs);
  return outputs;
}

Cost cost(const NodeView& view) { return {6 * element_number(view.input(0)), operand_bytes(view)}; }

}  // namespace

Operator sgd_update() {
  return {
      .name = "SgdUpdate",
      .inputs = {{"master"},
                 {"grad"},
                 {.name = "momentum_buffer", .optional = true},
                 {"lr"},
                 {"step"},
                 {"scale"},
                 {"skip"},
                 {.name = "weight", .optional = true}},
      .outputs = {{"new_master"},
                  {"new_momentum_buffer"},
                  {.name = "new_weight", .optional = true}},
      .attributes = sgd_attributes(),
      .infer = infer,
      .not_differentiable = not_differentiable_update,
      .cost = cost,
      .aliases = {{.output = 0, .input = 0}, {.output = 1, .input = 2}, {.output = 2, .input = 7}},
      .elementwise_ranges = true,
      .engine_only = true};
}

}  // namespace tandem::operators
