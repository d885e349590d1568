// The list of update kinds, and the operator that each becomes.
#include "engine/operators/update_kind.h"

#include <algorithm>
#include <cassert>

#include "engine/graph/error.h"
#include "engine/operators/update.h"
#include "engine/optimizers/composed.h"
#include "engine/optimizers/settings.h"

namespace tandem {

Shape UpdateKind::state_shape(std::size_t k, const Shape& master) const {
  assert(whole_row || states[k].shape != StateShape::one_per_row);
  Shape shape = master;
  switch (states[k].shape) {
    case StateShape::one_per_row:
      return {master[0]};
    case StateShape::row_statistics:
      shape[shape.size() - 1] = 1;
      break;
    case StateShape::column_statistics:
      shape[shape.size() - 2] = 1;
      break;
    case StateShape::number:
      return {};
    case StateShape::one_per_block:
      return {(element_count(master) + state_block - 1) / state_block};
    case StateShape::like_master:
    case StateShape::like_vector:
      break;
  }
  return shape;
}

TensorType UpdateKind::state_type(std::size_t k, const TensorType& master) const {
  return {states[k].form == StateForm::whole ? master.dtype : DType::uint8,
          state_shape(k, master.shape)};
}

bool UpdateKind::keeps_state(std::size_t k, const Attributes& settings, const Shape& master) const {
  const StateShape shape = states[k].shape;
  const bool of_matrices =
      shape == StateShape::row_statistics || shape == StateShape::column_statistics;
  if (matrices_of(master).is_vector ? of_matrices : shape == StateShape::like_vector) return false;
  return (kept(settings) >> k & 1u) != 0;
}

bool UpdateKind::is_factored() const { return factored_states(*this).row >= 0; }

Matrices matrices_of(const Shape& master) {
  const std::size_t axes = master.size();
  if (axes < 2) return {.columns = element_count(master), .is_vector = true};
  return {.count = element_count(Shape(master.begin(), master.end() - 2)),
          .rows = master[axes - 2],
          .columns = master[axes - 1]};
}

FactoredStates factored_states(const UpdateKind& kind) {
  const auto with = [&](StateShape shape) {
    for (std::size_t k = 0; k < kind.states.size(); ++k) {
      if (kind.states[k].shape == shape) return static_cast<int>(k);
    }
    return -1;
  };
  return {with(StateShape::row_statistics), with(StateShape::column_statistics),
          with(StateShape::like_vector)};
}

namespace {

/// Whether every master has a state of this shape.
bool is_of_every_master(StateShape shape) {
  return shape == StateShape::like_master || shape == StateShape::one_per_row ||
         shape == StateShape::number || shape == StateShape::one_per_block;
}

std::string quoted_choices(std::string_view choices) {
  std::string text;
  for (int i = 0; choice_at(choices, i) != choices.substr(choices.rfind('|') + 1); ++i)
    text += (i > 0 ? ", \"" : "\"") + std::string(choice_at(choices, i)) + "\"";
  return text + " or \"" + std::string(choices.substr(choices.rfind('|') + 1)) + "\"";
}

void require_number(const NodeView& view, const SettingInfo& info, double value) {
  const auto [low, high, below] = info.range;
  if (value >= low && value <= std::min(high, 1.7e308) && !(below && value >= high)) return;
  const std::string name(info.attribute);
  if (high == 1e300 && low == 0) require_not_negative(view, name);
  if (high != 1e300 && !below) require_between(view, name, low, high);
  const std::string above = high == 1e300 ? "" : " < " + std::to_string(high);
  view.fail(name + " is out of range", std::to_string(low) + " <= " + name + above,
            std::to_string(value));
}

template <class Kind>
void require_update_settings(const NodeView& view) {
  auto settings = settings_of<typename Kind::Settings>(view.attributes());
  each_setting(settings, [&](const SettingInfo& info, auto& x) {
    using Member = std::remove_reference_t<decltype(x)>;
    if (info.attribute.empty()) return;
    if constexpr (std::same_as<Member, double>) {
      require_number(view, info, x);
    } else if constexpr (std::same_as<Member, bool>) {
      require_flag(view, info.attribute);
    } else if (x < 0) {
      view.fail(std::string(info.attribute) + " is unknown", quoted_choices(info.choices),
                view.attributes().text(info.attribute));
    }
  });
  const SettingsProblem problem = Kind::problem(settings);
  if (problem.key != nullptr)
    view.fail(std::string(problem.key) + " does not fit", problem.message);
}

/// Attributes of the settings, in the order of the kind's `visit`.
template <class Settings>
std::vector<AttributeSpec> specs_of(Settings defaults) {
  std::vector<AttributeSpec> specs;
  each_setting(defaults, [&](const SettingInfo& info, const auto& x) {
    if (!info.attribute.empty())
      specs.push_back({std::string(info.attribute), attribute_of(info, x)});
  });
  return specs;
}

template <class Kind>
UpdateKind kind_of() {
  using Settings = typename Kind::Settings;
  UpdateKind kind;
  kind.op = kind.rule = Kind::op;
  if constexpr (KeepsBytes<Kind>) kind.rule = Kind::Formula::op;
  kind.attributes = specs_of(Settings{});
  unsigned always = all_states<Kind>;
  for (const unsigned set : Kind::state_sets) always &= set;
  for (std::size_t k = 0; k < static_cast<std::size_t>(state_count<Kind>); ++k) {
    const auto& state = Kind::states[k];
    const bool optional = (always >> k & 1u) == 0 || !is_of_every_master(state.shape);
    kind.states.push_back(
        {state.name, state.shape, optional, state.squares, state.lead, state.form});
  }
  kind.require_settings = require_update_settings<Kind>;
  kind.kept = [](const Attributes& a) { return kept_states<Kind>(settings_of<Settings>(a)); };
  kind.keeps_still = [](const Attributes& a) {
    return Kind::keeps_still(settings_of<Settings>(a));
  };
  kind.whole_row = Kind::whole_row;
  kind.whole_tensor = Kind::whole_tensor;
  kind.flops = Kind::flops;
  kind.needs = [](const Attributes& a, std::size_t axes) {
    return Kind::needs(settings_of<Settings>(a), axes);
  };
  if constexpr (Composed<Kind>) {
    kind.compose = [](const Attributes& a, ComposedStep& step) {
      return Kind::compose(settings_of<Settings>(a), step);
    };
  }
  return kind;
}

template <class... Kinds>
std::vector<UpdateKind> kinds_of(OptimizerList<Kinds...>) {
  return {kind_of<Kinds>()...};
}

}  // namespace

void fail_update(std::string_view op, const char* what) {
  throw Error(ErrorKind::runtime,
              Diagnostic{.message = "internal error: " + std::string(op) + " " + what});
}

const std::vector<UpdateKind>& update_kinds() {
  static const std::vector<UpdateKind> kinds = kinds_of(Optimizers{});
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

const std::vector<std::string>& lead_states() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const UpdateKind& kind : update_kinds()) {
      for (const UpdateState& state : kind.states) {
        if (state.lead) all.push_back(state.name);
      }
    }
    return all;
  }();
  return names;
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
    if (kind.compose != nullptr || (of_rows && !kind.updates_rows())) continue;
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
  for (std::size_t k = 0; k < kind.states.size(); ++k) {
    const std::size_t input = first + k;
    const bool used = kind.keeps_state(k, view.attributes(), master.shape);
    if (view.has_input(input) != used) {
      const std::string& name = kind.states[k].name;
      const bool is_set = (kind.kept(view.attributes()) >> k & 1u) != 0;
      view.fail(is_set ? "states do not fit the master" : "settings and states do not fit",
                used     ? "a " + name
                : is_set ? "no " + name + " of " + to_string(master)
                         : "no " + name + " with these settings",
                used ? "none" : "one");
    }
    const TensorType type = used ? kind.state_type(k, master) : TensorType{master.dtype, {0}};
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
  // A factored kind reads the gradient three times; its states are small.
  const double tensors = kind.is_factored() ? 3 : 1 + static_cast<double>(kind.states.size());
  return tensors * static_cast<double>(master.bytes());
}

namespace {

std::vector<TensorType> infer_update(const NodeView& view) {
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

Cost update_cost(const NodeView& view) {
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
    op.inputs.push_back({.name = state.name, .optional = state.optional});
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
  op.infer = infer_update;
  op.not_differentiable = not_differentiable_update;
  op.cost = update_cost;
  op.elementwise_ranges = kind.elementwise();
  op.engine_only = true;
  return op;
}

}  // namespace operators
}  // namespace tandem
