// PyTorch's Adam and (decoupled) AdamW with g = scale * grad: m = beta1 * m + (1 - beta1) * g,
// v = beta2 * v + (1 - beta2) * g^2, master = master - lr * m^ / (sqrt(v^) + epsilon). `skip` keeps
// all.
#include "engine/operators/operators.h"
#include "engine/operators/update.h"

namespace tandem::operators {

std::vector<AttributeSpec> adam_attributes() {
  return {{"beta1", 0.9},
          {"beta2", 0.999},
          {"epsilon", 1e-8},
          {"weight_decay", 0.0},
          {"decoupled", std::int64_t{0}},
          {"bias_correction", std::int64_t{1}},
          {"epsilon_form", std::string("pytorch")},
          weight_attribute()};
}

void require_adam_settings(const NodeView& view) {
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

std::vector<TensorType> adam_outputs(const NodeView& view, std::size_t first) {
  const TensorType master = require_master_and_grad(view, first);
  require_type(view, first + 2, master);
  require_type(view, first + 3, master);
  return {master, master, master};
}

namespace {

std::vector<TensorType> infer(const NodeView& view) {
  require_adam_settings(view);
  require_update_scalars(view, 4);
  std::vector<TensorType> outputs = adam_outputs(view, 0);
  add_weight_output(view, 8, outputs);
  return outputs;
}

Cost cost(const NodeView& view) {
  return {14 * element_number(view.input(0)), operand_bytes(view)};
}

}  // namespace

Operator adam_update() {
  return {.name = "AdamUpdate",
          .inputs = {{"master"},
                     {"grad"},
                     {"exp_avg"},
                     {"exp_avg_sq"},
                     {"lr"},
                     {"step"},
                     {"scale"},
                     {"skip"},
                     {.name = "weight", .optional = true}},
          .outputs = {{"new_master"},
                      {"new_exp_avg"},
                      {"new_exp_avg_sq"},
                      {.name = "new_weight", .optional = true}},
          .attributes = adam_attributes(),
          .infer = infer,
          .not_differentiable = not_differentiable_update,
          .cost = cost,
          .aliases = {{.output = 0, .input = 0},
                      {.output = 1, .input = 2},
                      {.output = 2, .input = 3},
                      {.output = 3, .input = 8}},
          .elementwise_ranges = true,
          .engine_only = true};
}

}  // namespace tandem::operators
