// The list of update kinds, and the operator that each becomes.
#include "engine/operators/update_kind.h"

#include <algorithm>
#include <cassert>

#include "engine/operators/update.h"

namespace tandem {

Shape UpdateKind::state_shape(std::size_t k, const Shape& master) const {
  assert(whole_row || !states[k].by_row);
  return states[k].by_row ? Shape{master[0]} : master;
}

const std::vector<UpdateKind>& update_kinds() {
  static const std::vector<UpdateKind> kinds{
      operators::sgd_kind(),     operators::adam_kind(),
      operators::adagrad_kind(), operators::rowwise_adagrad_kind(),
      operators::ftrl_kind(),    operators::group_ftrl_kind(),
      operators::lamb_kind()};
  return kinds;
}

bool is_state_of_squares(std::string_view name) {
  bool found = false;
  for (const UpdateKind& kind : update_kinds()) {
    for (const UpdateState& state : kind.states) {
      if (state.name != name) continue;
      if (!state.squares) return false;
      found = true;
    }
  }
  return found;
}

const UpdateKind* find_update_kind(std::string_view op) {
  for (const UpdateKind& kind : update_kinds()) {
    if (kind.op == op) return &kind;
  }
  return nullptr;
}

const UpdateKind& update_kind(const Node& node) {
  const AttributeValue* op = node.attributes.find("op");
  const UpdateKind* kind = find_update_kind(op ? node.attributes.text("op") : node.op->name);
  assert(kind != nullptr);
  return *kind;
}

std::vector<AttributeSpec> all_update_attributes(bool of_rows) {
  std::vector<AttributeSpec> all;
  for (const UpdateKind& kind : update_kinds()) {
    if (of_rows && kind.whole_tensor) continue;
    for (const AttributeSpec& spec : kind.attributes) {
      const bool known =
          std::any_of(all.begin(), all.end(), [&](const auto& a) { return a.name == spec.name; });
      if (!known) all.push_back(spec);
    }
  }
  return all;
}

Attributes declared_attributes(const Operator& op, const Attributes& attributes) {
  Attributes declared;
  for (const AttributeSpec& spec : op.attributes) {
    if (const AttributeValue* value = attributes.find(spec.name)) declared.set(spec.name, *value);
  }
  return declared;
}

namespace operators {

void require_update_scalars(const NodeView& view, std::size_t first) {
  for (std::size_t i : {first, first + 2}) {
    if (view.input(i).dtype != DType::float64) require_dtype(view, i, DType::float32);
  }
  require_dtype(view, first + 1, DType::int64);
  require_dtype(view, first + 3, DType::boolean);
  for (std::size_t i = first; i < first + 4; ++i) require_shape(view, i, {});
}

void require_rows(const NodeView& view, const UpdateKind& kind, const TensorType& master) {
  if (!kind.whole_row || master.rank() >= 2) return;
  view.fail(kind.op + " works on rows", "a parameter of at least two dimensions",
            to_string(master));
}

const TensorType& require_master(const NodeView& view, const UpdateKind& kind, std::size_t first) {
  const TensorType& master = view.input(first);
  if (master.dtype != DType::float64) require_dtype(view, first, DType::float32);
  require_rows(view, kind, master);
  return master;
}

void require_gradient(const NodeView& view, std::size_t grad, const TensorType& master) {
  require_float(view, grad);
  require_shape(view, grad, master.shape);
}

void add_state_outputs(const NodeView& view, const UpdateKind& kind, const TensorType& master,
                       std::size_t first, std::vector<TensorType>& outputs) {
  const bool used = kind.uses_states(view.attributes());
  for (std::size_t k = 0; k < kind.states.size(); ++k) {
    const std::size_t input = first + k;
    if (view.has_input(input) != used) {
      const std::string& name = kind.states[k].name;
      view.fail("settings and states do not fit",
                used ? "a " + name : "no " + name + " with these settings", used ? "none" : "one");
    }
    const TensorType type{master.dtype, used ? kind.state_shape(k, master.shape) : Shape{0}};
    if (used) require_type(view, input, type);
    outputs.push_back(type);
  }
}

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

double bytes_read_again(const UpdateKind& kind, const TensorType& master) {
  if (!kind.whole_tensor) return 0;
  return static_cast<double>(1 + kind.states.size()) * static_cast<double>(master.bytes());
}

namespace {

std::vector<TensorType> infer(const NodeView& view) {
  const UpdateKind& kind = update_kind(view.node);
  kind.require_settings(view);
  const TensorType master = require_master(view, kind, 0);
  require_gradient(view, 1, master);
  std::vector<TensorType> outputs{master};
  add_state_outputs(view, kind, master, 2, outputs);
  const std::size_t scalars = 2 + kind.states.size();
  require_update_scalars(view, scalars);
  if (!kind.whole_row) add_weight_output(view, scalars + 4, outputs);
  return outputs;
}

Cost cost(const NodeView& view) {
  const UpdateKind& kind = update_kind(view.node);
  return {kind.flops * element_number(view.input(0)),
          operand_bytes(view) + bytes_read_again(kind, view.input(0))};
}

}  // namespace

Operator update_operator(const UpdateKind& kind) {
  Operator op;
  op.name = kind.op;
  op.inputs = {{"master"}, {"grad"}};
  op.outputs = {{"new_master"}};
  op.aliases = {{.output = 0, .input = 0}};
  for (const UpdateState& state : kind.states) {
    const int k = static_cast<int>(op.outputs.size());
    op.aliases.push_back({.output = k, .input = k + 1});
    op.inputs.push_back({.name = state.name, .optional = kind.has_states != nullptr});
    op.outputs.push_back({"new_" + state.name});
  }
  for (const char* scalar : {"lr", "step", "scale", "skip"}) op.inputs.push_back({scalar});
  op.attributes = kind.attributes;
  if (!kind.whole_row) {
    op.aliases.push_back({.output = static_cast<int>(op.outputs.size()),
                          .input = static_cast<int>(op.inputs.size())});
    op.inputs.push_back({.name = "weight", .optional = true});
    op.outputs.push_back({.name = "new_weight", .optional = true});
    op.attributes.push_back(weight_attribute());
  }
  op.infer = infer;
  op.not_differentiable = not_differentiable_update;
  op.cost = cost;
  op.elementwise_ranges = kind.elementwise();
  op.engine_only = true;
  return op;
}

}  // namespace operators
}  // namespace tandem
