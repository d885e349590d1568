// `count` updates with the same settings as one node: lowering makes it, so that one kernel call
// does them all.
#include "engine/operators/grouped_update.h"

#include <cassert>

#include "engine/operators/operators.h"
#include "engine/operators/update.h"

namespace tandem {

UpdateGroup update_group(std::string_view op) {
  assert(op == "SgdUpdate" || op == "AdamUpdate");
  return op == "SgdUpdate" ? UpdateGroup{3, 2} : UpdateGroup{4, 3};
}

std::vector<Alias> grouped_update_aliases(const Node& node) {
  const UpdateGroup group = update_group(node.attributes.text("op"));
  std::vector<Alias> aliases;
  for (std::int64_t i = 0; i < node.attributes.integer("count"); ++i) {
    const int output = static_cast<int>(i) * static_cast<int>(group.outputs);
    const int input = static_cast<int>(i) * static_cast<int>(group.inputs);
    aliases.push_back({output, input});  // master; the gradient has no output
    for (int k = 1; k < static_cast<int>(group.outputs); ++k) {
      aliases.push_back({output + k, input + k + 1});
    }
  }
  return aliases;
}

namespace operators {
namespace {

std::vector<TensorType> infer(const NodeView& view) {
  const std::string& op = view.attributes().text("op");
  if (op != "SgdUpdate" && op != "AdamUpdate") {
    view.fail("op cannot be grouped", "\"SgdUpdate\" or \"AdamUpdate\"", op);
  }
  const bool sgd = op == "SgdUpdate";
  const std::int64_t count = view.attributes().integer("count");
  const UpdateGroup group = update_group(op);
  if (count < 1 || view.input_count() != static_cast<std::size_t>(count) * group.inputs + 4) {
    view.fail("count does not fit the inputs",
              std::to_string(group.inputs) + " x count + 4 inputs, count from 1",
              std::to_string(view.input_count()) + " inputs, count " + std::to_string(count));
  }
  for (std::size_t i = 0; i < view.input_count(); ++i) {
    const bool buffer = sgd && i + 4 < view.input_count() && i % group.inputs == 2;
    if (!view.has_input(i) && !buffer) {
      view.fail("an operand is missing", "all but momentum buffers",
                "no input " + std::to_string(i));
    }
  }
  if (sgd) {
    require_sgd_settings(view);
  } else {
    require_adam_settings(view);
  }
  require_update_scalars(view, view.input_count() - 4);
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const std::size_t first = i * group.inputs;
    require_dtype(view, first, view.input(0).dtype);  // one kernel, one type
    for (TensorType& type : sgd ? sgd_outputs(view, first) : adam_outputs(view, first)) {
      types.push_back(std::move(type));
    }
  }
  return types;
}

Cost cost(const NodeView& view) {
  const std::string& op = view.attributes().text("op");
  const std::size_t step = update_group(op).inputs;
  double masters = 0;
  for (std::size_t i = 0; i + 4 < view.input_count(); i += step) {
    masters += element_number(view.input(i));
  }
  return {(op == "SgdUpdate" ? 6 : 14) * masters, operand_bytes(view)};
}

}  // namespace

Operator grouped_update() {
  std::vector<AttributeSpec> attributes{{"op", std::string{}, true},
                                        {"count", std::int64_t{0}, true}};
  for (const AttributeSpec& spec : sgd_attributes()) attributes.push_back(spec);
  for (const AttributeSpec& spec : adam_attributes()) {
    if (spec.name != "weight_decay") attributes.push_back(spec);  // both have it
  }
  return {.name = "GroupedUpdate",
          .inputs = {{.name = "operands", .optional = true, .variadic = true}},
          .outputs = {{.name = "updated", .variadic = true}},
          .attributes = std::move(attributes),
          .infer = infer,
          .not_differentiable = not_differentiable_update,
          .cost = cost,
          .engine_only = true};
}

}  // namespace operators
}  // namespace tandem
