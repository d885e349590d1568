// `count` updates with the same settings as one node: lowering makes it, so that one kernel call
// does them all.
#include "engine/operators/grouped_update.h"

#include <cassert>

#include "engine/operators/operators.h"
#include "engine/operators/update.h"

namespace tandem {

bool is_optimizer_update(const Node& node) {
  return node.op->name == "SgdUpdate" || node.op->name == "AdamUpdate";
}

UpdateGroup update_group(std::string_view op, bool weight) {
  assert(op == "SgdUpdate" || op == "AdamUpdate");
  UpdateGroup group;
  group.tensors = op == "SgdUpdate" ? 3 : 4;
  group.results = group.tensors - 1;
  group.weight = weight;
  group.inputs = group.tensors + weight;
  group.outputs = group.results + weight;
  return group;
}

UpdateGroup update_group(const Node& node) {
  const bool grouped = node.op->name == "GroupedUpdate";
  return update_group(grouped ? node.attributes.text("op") : node.op->name,
                      !node.attributes.text("weight").empty());
}

std::size_t first_scalar(const Node& node) {
  return node.op->name == "GroupedUpdate" ? node.inputs.size() - update_scalars
                                          : update_group(node).tensors;
}

namespace {

std::vector<Alias> grouped_update_aliases(const Node& node) {
  const UpdateGroup group = update_group(node);
  std::vector<Alias> aliases;
  for (std::int64_t i = 0; i < node.attributes.integer("count"); ++i) {
    const int output = static_cast<int>(i) * static_cast<int>(group.outputs);
    const int input = static_cast<int>(i) * static_cast<int>(group.inputs);
    aliases.push_back({output, input});  // master; the gradient has no output
    for (int k = 1; k < static_cast<int>(group.outputs); ++k) {
      aliases.push_back({output + k, input + k + 1});  // the states, then the weight
    }
  }
  return aliases;
}

}  // namespace

std::vector<Alias> aliases_of(const Node& node) {
  std::vector<Alias> aliases =
      node.op->name == "GroupedUpdate" ? grouped_update_aliases(node) : node.op->aliases;
  std::erase_if(aliases, [&](const Alias& alias) {
    const auto input = static_cast<std::size_t>(alias.input);
    return static_cast<std::size_t>(alias.output) >= node.outputs.size() ||
           input >= node.inputs.size() || !node.inputs[input];
  });
  return aliases;
}

namespace operators {

void add_weight_output(const NodeView& view, std::size_t old, std::vector<TensorType>& outputs) {
  const std::string& name = view.attributes().text("weight");
  if (name.empty()) return;
  const std::optional<DType> dtype = dtype_from_name(name);
  if (dtype != DType::bfloat16 && dtype != DType::float16) {
    view.fail("attribute 'weight'", "\"bfloat16\", \"float16\" or nothing", "\"" + name + "\"");
  }
  outputs.push_back({*dtype, outputs[0].shape});
  if (view.has_input(old)) require_type(view, old, outputs.back());
}

namespace {

std::vector<TensorType> infer(const NodeView& view) {
  const std::string& op = view.attributes().text("op");
  if (op != "SgdUpdate" && op != "AdamUpdate") {
    view.fail("op cannot be grouped", "\"SgdUpdate\" or \"AdamUpdate\"", op);
  }
  const bool sgd = op == "SgdUpdate";
  const std::int64_t count = view.attributes().integer("count");
  const UpdateGroup group = update_group(view.node);
  if (count < 1 || view.input_count() != static_cast<std::size_t>(count) * group.inputs + 4) {
    view.fail("count does not fit the inputs",
              std::to_string(group.inputs) + " x count + 4 inputs, count from 1",
              std::to_string(view.input_count()) + " inputs, count " + std::to_string(count));
  }
  for (std::size_t i = 0; i < view.input_count(); ++i) {
    const std::size_t k = i % group.inputs;
    const bool optional =
        i + 4 < view.input_count() && ((sgd && k == 2) || (group.weight && k == group.tensors));
    if (!view.has_input(i) && !optional) {
      view.fail("an operand is missing", "all but momentum buffers and weights",
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
    std::vector<TensorType> own = sgd ? sgd_outputs(view, first) : adam_outputs(view, first);
    add_weight_output(view, first + group.tensors, own);
    for (TensorType& type : own) types.push_back(std::move(type));
  }
  return types;
}

Cost cost(const NodeView& view) {
  const std::string& op = view.attributes().text("op");
  const std::size_t step = update_group(view.node).inputs;
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
    if (spec.name == "weight_decay" || spec.name == "weight") continue;  // both have them
    attributes.push_back(spec);
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
