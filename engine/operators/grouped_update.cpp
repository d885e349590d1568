// `count` updates with the same settings as one node: lowering makes it, so that one kernel call
// does them all.
#include "engine/operators/grouped_update.h"

#include "engine/operators/operator.h"
#include "engine/operators/update.h"

namespace tandem {

bool is_optimizer_update(const Node& node) { return find_update_kind(node.op->name) != nullptr; }

UpdateGroup update_group(const UpdateKind& kind, bool weight) {
  UpdateGroup group;
  group.tensors = 2 + kind.states.size();
  group.results = group.tensors - 1;
  group.weight = weight;
  group.inputs = group.tensors + weight;
  group.outputs = group.results + weight;
  return group;
}

UpdateGroup update_group(const Node& node) {
  const bool can = node.attributes.find("weight") != nullptr;
  return update_group(update_kind(node), can && !node.attributes.text("weight").empty());
}

std::size_t first_scalar(const Node& node) {
  return node.op->role == Role::grouped_update ? node.inputs.size() - update_scalars
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
      node.op->node_aliases != nullptr ? node.op->node_aliases(node) : node.op->aliases;
  std::erase_if(aliases, [&](const Alias& alias) {
    const auto input = static_cast<std::size_t>(alias.input);
    return static_cast<std::size_t>(alias.output) >= node.outputs.size() ||
           input >= node.inputs.size() || !node.inputs[input];
  });
  return aliases;
}

namespace operators {
namespace {

std::vector<TensorType> infer_grouped_update(const NodeView& view) {
  const std::string& op = view.attributes().text("op");
  const UpdateKind* kind = find_update_kind(op);
  if (kind == nullptr || !kind->may_be_grouped()) {
    view.fail("op cannot be grouped", "an update of single elements", op);
  }
  const std::int64_t count = view.attributes().integer("count");
  const UpdateGroup group = update_group(view.node);
  if (count < 1 || view.input_count() != static_cast<std::size_t>(count) * group.inputs + 4) {
    view.fail("count does not fit the inputs",
              std::to_string(group.inputs) + " x count + 4 inputs, count from 1",
              std::to_string(view.input_count()) + " inputs, count " + std::to_string(count));
  }
  for (std::size_t i = 0; i < view.input_count(); ++i) {
    const std::size_t k = i % group.inputs;
    // States are checked with the settings below.
    if (view.has_input(i) || (i + 4 < view.input_count() && k >= 2)) continue;
    view.fail("an operand is missing", "all but states that the settings do not use, and weights",
              "no input " + std::to_string(i));
  }
  kind->require_settings(view);
  require_update_scalars(view, view.input_count() - 4);
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const std::size_t first = i * group.inputs;
    require_dtype(view, first, view.input(0).dtype);  // one kernel, one type
    const TensorType master = require_master(view, *kind, first);
    require_gradient(view, first + 1, master);
    std::vector<TensorType> own{master};
    add_state_outputs(view, *kind, master, first + 2, own);
    add_weight_output(view, first + group.tensors, own);
    for (TensorType& type : own) types.push_back(std::move(type));
  }
  return types;
}

Cost grouped_update_cost(const NodeView& view) {
  const std::size_t step = update_group(view.node).inputs;
  const UpdateKind& kind = update_kind(view.node);
  double masters = 0, bytes = operand_bytes(view);
  for (std::size_t i = 0; i + 4 < view.input_count(); i += step) {
    masters += element_number(view.input(i));
    bytes += bytes_read_again(kind, view.input(i));
  }
  return {kind.flops * masters, bytes};
}

}  // namespace

Operator grouped_update() {
  std::vector<AttributeSpec> attributes{{"op", std::string{}, true},
                                        {"count", std::int64_t{0}, true}};
  for (AttributeSpec& spec : all_update_attributes(false)) attributes.push_back(std::move(spec));
  attributes.push_back(weight_attribute());
  return {.name = "GroupedUpdate",
          .role = Role::grouped_update,
          .inputs = {{.name = "operands", .optional = true, .variadic = true}},
          .outputs = {{.name = "updated", .variadic = true}},
          .attributes = std::move(attributes),
          .infer = infer_grouped_update,
          .not_differentiable = not_differentiable_update,
          .cost = grouped_update_cost,
          .node_aliases = grouped_update_aliases,
          .engine_only = true};
}

}  // namespace operators
}  // namespace tandem
