#include "importer/training_info/algorithm_import.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/graph/selector.h"
#include "engine/graph/text.h"
#include "importer/operators/training/optimizers.h"
#include "importer/training_info/split.h"
#include "importer/walk.h"

namespace tandem::importer {
namespace {

constexpr const char* training_domain = "ai.onnx.preview.training";

const onnx::TrainingInfoProto& info_of(const OnnxFile::Content& file) {
  return file.model->training_info(0);
}

std::vector<std::string> texts(const onnx::NodeProto& node, const std::string& name) {
  const onnx::AttributeProto* given = find_attribute(node, name);
  if (given == nullptr) return {};
  return {given->strings().begin(), given->strings().end()};
}

std::string text(const onnx::NodeProto& node, const std::string& name) {
  const onnx::AttributeProto* given = find_attribute(node, name);
  return given == nullptr ? "" : given->s();
}

bool is_same(const Term& a, const Term& b) {
  return a.id ? a.id == b.id : a.constant != nullptr && a.constant == b.constant;
}

/// Whether `y` is computed from one of `values`.
bool depends_on(const Graph& graph, ValueId y, const std::vector<ValueId>& values) {
  std::vector<bool> depends(graph.values.size(), false);
  for (const ValueId value : values) depends[static_cast<std::size_t>(value.index)] = true;
  for (const Node& node : graph.nodes) {
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      return id && depends[static_cast<std::size_t>(id.index)];
    });
    for (const ValueId output : node.outputs)
      depends[static_cast<std::size_t>(output.index)] =
          any || depends[static_cast<std::size_t>(output.index)];
  }
  return depends[static_cast<std::size_t>(y.index)];
}

/// A graph in the making with other values in the place of some.
class Substitution {
 public:
  Substitution(Session& session, std::vector<std::pair<ValueId, ValueId>> replaced)
      : session_(session), replaced_(std::move(replaced)) {}

  /// `y` as it would be were the values others: its nodes once more.
  ValueId apply(ValueId y) {
    GraphBuilder& builder = session_.builder;
    const std::size_t count = builder.graph().nodes.size();
    std::vector<ValueId> map(builder.graph().values.size());
    for (const auto& [from, to] : replaced_) map[static_cast<std::size_t>(from.index)] = to;
    for (std::size_t n = 0; n < count; ++n) {
      const Node node = builder.graph().nodes[n];  // a copy: appending moves the nodes
      const auto is_changed = [&](ValueId id) {
        return id && map[static_cast<std::size_t>(id.index)];
      };
      if (std::none_of(node.inputs.begin(), node.inputs.end(), is_changed)) continue;
      std::vector<ValueId> inputs;
      for (const ValueId id : node.inputs)
        inputs.push_back(is_changed(id) ? map[static_cast<std::size_t>(id.index)] : id);
      builder.set_scope({node.path, node.phase, node.origins});
      const std::vector<ValueId> outputs =
          builder.node(node.op->name, std::move(inputs), node.attributes, node.body);
      for (std::size_t k = 0; k < outputs.size(); ++k) {
        ValueId& to = map[static_cast<std::size_t>(node.outputs[k].index)];
        if (!to) to = outputs[k];
      }
    }
    const ValueId result = map[static_cast<std::size_t>(y.index)];
    return result ? result : y;
  }

 private:
  Session& session_;
  std::vector<std::pair<ValueId, ValueId>> replaced_;
};

}  // namespace

bool is_part_of_training(const onnx::NodeProto& node) { return node.domain() == training_domain; }

AlgorithmImport::AlgorithmImport(const OnnxFile::Content& file) : file_(file) {
  for (const onnx::TensorProto& tensor : info_of(file).algorithm().initializer())
    own_.insert(tensor.name());
}

void AlgorithmImport::fail(std::string where, std::string message, std::string expected,
                           std::string got, std::string fix) const {
  refuse(file_.path, std::move(where), std::move(message), std::move(expected), std::move(got),
         std::move(fix));
}

StateKind AlgorithmImport::kind_of(const std::string& name) const {
  if (own_.count(name) > 0) return StateKind::optimizer;
  return is_float(file_.initializers.at(name).dtype()) ? StateKind::parameter : StateKind::buffer;
}

std::vector<std::string> AlgorithmImport::reads() const {
  std::vector<std::string> names;
  for (const onnx::NodeProto& node : info_of(file_).algorithm().node()) {
    if (!is_part_of_training(node) || node.op_type() != "Gradient") continue;
    names.push_back(text(node, "y"));
    for (const char* list : {"xs", "zs"}) {
      for (std::string& name : texts(node, list)) names.push_back(std::move(name));
    }
  }
  return names;
}

int AlgorithmImport::main_outputs() const { return file_.model->graph().output_size(); }

void AlgorithmImport::settle(std::unordered_map<std::string, Role>& roles) const {
  std::unordered_map<std::string_view, bool> bound;  // whether each step changes it
  for (const onnx::StringStringEntryProto& entry : info_of(file_).initialization_binding())
    bound[entry.key()] = false;
  for (const onnx::StringStringEntryProto& entry : info_of(file_).update_binding())
    bound[entry.key()] = true;
  for (auto& [name, role] : roles) {
    const auto binding = bound.find(name);
    const bool changes = binding != bound.end() && binding->second;
    const bool is_parameter = role.is_state && role.kind == StateKind::parameter;
    if (binding != bound.end() || (own_.count(name) == 0 && is_parameter)) {
      const bool is_own = own_.count(name) > 0;
      if (is_own || !role.is_state) role.kind = kind_of(name);
      role.is_state = true;
      role.trainable = changes && !is_own && role.kind == StateKind::parameter;
      role.reason = changes ? "training_info updates it" : "training_info leaves it as it is";
    } else if (own_.count(name) > 0) {
      role = {false, StateKind::parameter, false, "a constant of training_info"};
    }
  }
}

void AlgorithmImport::lower_part(Session& session, Scope& scope, const onnx::NodeProto& node) {
  if (node.op_type() != "Gradient") {
    lower_node(session, scope, node);
    const Term* first = node.output_size() > 0 ? scope.find(node.output(0)) : nullptr;
    if (first != nullptr && !first->bad) add_updates(session, scope, node, node.op_type());
    return;
  }
  const std::string base = session.modules.operator_path(node);
  const std::string path = session.paths.next(base, node.op_type());
  session.paths.commit(base, node.op_type());
  const GraphBuilder::Scope outer = session.builder.scope();
  session.builder.set_scope({path, Phase::forward, {}});
  try {
    lower_gradient(session, scope, node, path);
  } catch (const Error& error) {
    session.report("bad_operator", node.op_type(), error.diagnostics()[0]);
  }
  for (const std::string& output : node.output()) {
    if (!output.empty() && scope.find(output) == nullptr) scope.names[output].bad = true;
  }
  session.builder.set_scope(outer);
}

void AlgorithmImport::lower_gradient(Session& session, Scope& scope, const onnx::NodeProto& node,
                                     const std::string& path) {
  const std::vector<std::string> xs = texts(node, "xs"), zs = texts(node, "zs");
  const std::string y_name = text(node, "y");
  const auto named = [&](const char* what, const std::string& name) -> const Term& {
    const Term* term = scope.find(name);
    if (term != nullptr && !term->sequence && !term->none) return *term;
    std::vector<std::string> names;
    for (const auto& [known, value] : scope.names) names.push_back(known);
    fail(path, fmt::format("Gradient: {} names no value before it", what),
         "a value of the graph or of training_info.algorithm", "'" + name + "'",
         did_you_mean(nearest_name(name, names), "", "'"));
  };
  if (xs.empty()) fail(path, "Gradient has no xs", "the values to derive by");
  if (node.input_size() != static_cast<int>(xs.size() + zs.size())) {
    fail(path, "Gradient has not one input for each name of xs and zs",
         std::to_string(xs.size() + zs.size()), std::to_string(node.input_size()));
  }
  if (node.output_size() > static_cast<int>(xs.size())) {
    fail(path, "Gradient has more outputs than xs", std::to_string(xs.size()),
         std::to_string(node.output_size()));
  }
  const Term& y = named("y", y_name);
  bool is_unknown = y.bad;
  std::vector<std::pair<ValueId, ValueId>> replaced;
  AlgorithmGradient gradient{path, {}, {}, std::vector<ValueId>(xs.size())};
  for (std::size_t i = 0; i < xs.size() + zs.size(); ++i) {
    const bool is_x = i < xs.size();
    const std::string& name = is_x ? xs[i] : zs[i - xs.size()];
    const Term& variable = named(is_x ? "xs" : "zs", name);
    const Term& given = named("an input", node.input(static_cast<int>(i)));
    is_unknown = is_unknown || variable.bad || given.bad;
    if (variable.bad || given.bad) continue;
    if (given.type != variable.type) {
      fail(path,
           fmt::format("Gradient: input '{}' has not the type of '{}'",
                       node.input(static_cast<int>(i)), name),
           to_string(variable.type), to_string(given.type));
    }
    if (is_x && (!is_float(variable.type.dtype) || !variable.id)) {
      fail(path, fmt::format("Gradient cannot derive by '{}'", name),
           "a floating-point value that changes",
           variable.id ? to_string(variable.type) : "a constant");
    }
    if (!is_same(variable, given))
      replaced.emplace_back(session.place(variable), session.place(given));
    if (is_x) gradient.xs.push_back(session.place(given));
  }
  if (is_unknown) return;  // reported where it was made
  if (!y.id || !is_float(y.type.dtype)) {
    fail(path, fmt::format("Gradient cannot derive '{}'", y_name),
         "a floating-point value that nodes make", y.id ? to_string(y.type) : "a constant");
  }
  gradient.y = y.id;
  if (!replaced.empty()) {
    std::vector<ValueId> derivatives;
    for (const AlgorithmGradient& other : gradients_) {
      for (const ValueId dx : other.dx) {
        if (dx) derivatives.push_back(dx);
      }
    }
    if (depends_on(session.builder.graph(), y.id, derivatives)) {
      fail(path,
           fmt::format("Gradient: '{}' is made of derivatives, and is to be derived at other "
                       "values than it has",
                       y_name),
           "inputs that are the values which xs and zs name");
    }
    gradient.y = Substitution(session, std::move(replaced)).apply(y.id);
  }
  for (int i = 0; i < node.output_size(); ++i) {
    const std::string& output = node.output(i);
    if (output.empty()) continue;
    const ValueId x = gradient.xs[static_cast<std::size_t>(i)];
    const ValueId dx = session.builder.input(output, session.builder.type(x));
    gradient.dx[static_cast<std::size_t>(i)] = dx;
    scope.names[output] = session.value(dx);
    session.record.shapes[output] = session.builder.shape(dx);
  }
  gradients_.push_back(std::move(gradient));
}

void AlgorithmImport::add_updates(Session& session, Scope& scope, const onnx::NodeProto& node,
                                  const std::string& path) {
  const GraphBuilder::Scope outer = session.builder.scope();
  session.builder.set_scope({path, Phase::forward, {}});
  NodeContext context(session, scope, node, 1, path);
  const OptimizerStep step = optimizer_step(context);
  session.builder.set_scope(outer);
  if (step.update.empty()) return;
  const std::size_t count = step.parameters;
  for (std::size_t i = 0; i < count; ++i) {
    AlgorithmUpdate update{step.update,
                           step.settings,
                           session.place(step.lr),
                           session.place(step.step),
                           session.place(context.in(2 + count + i)),
                           {},
                           {}};
    bool is_whole = true;
    for (std::size_t k = 0; k <= step.states; ++k) {
      const std::size_t input = 2 + (k == 0 ? 0 : k + 1) * count + i;
      update.before.push_back(session.place(context.in(input)));
      const std::size_t output = k * count + i;
      const Term* after =
          context.wants(output) ? scope.find(node.output(static_cast<int>(output))) : nullptr;
      is_whole = is_whole && after != nullptr;
      if (after != nullptr) update.after.push_back(session.place(*after));
    }
    if (is_whole) updates_.push_back(std::move(update));
  }
}

Graph AlgorithmImport::split(Session& session, const Scope& scope, Graph all) {
  SplitRequest request{gradients_, updates_, {}, {}, {}, own_};
  const onnx::GraphProto& graph = session.file.model->graph();
  for (int i = 0; i < graph.output_size(); ++i) {
    const NamedValue* output = all.find_output(graph.output(i).name());
    const auto& bindings = info_of(file_).update_binding();
    // What only a state takes is no business of evaluations.
    const bool is_bound = std::any_of(bindings.begin(), bindings.end(), [&](const auto& entry) {
      return entry.value() == graph.output(i).name();
    });
    if (output == nullptr || (i >= main_outputs() && is_bound)) continue;
    (i < main_outputs() ? request.outputs : request.more_outputs).push_back(*output);
  }
  for (const onnx::StringStringEntryProto& entry : info_of(file_).update_binding()) {
    const State* state = all.find_state(entry.key());
    const Term* term = scope.find(entry.value());
    const NamedValue* output = all.find_output(entry.value());
    if (state == nullptr || term == nullptr || output == nullptr || term->bad) {
      fail("training_info.update_binding",
           fmt::format("the binding of '{}' cannot be made", entry.key()),
           "a tensor of a type that is trained",
           state == nullptr ? "another type of '" + entry.key() + "'" : "'" + entry.value() + "'");
    }
    if (all.type(output->value) != state->start.type()) {
      fail("training_info.update_binding",
           fmt::format("'{}' has another type than '{}', which takes it", entry.value(),
                       entry.key()),
           to_string(state->start.type()), to_string(all.type(output->value)));
    }
    request.writes.push_back({entry.key(), output->value});
  }
  Split parts = split_training(std::move(all), session.operators, std::move(request));
  algorithm = std::make_shared<TrainingAlgorithm>(std::move(parts.algorithm));
  return std::move(parts.forward);
}

}  // namespace tandem::importer
