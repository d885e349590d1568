// Appends nodes to a graph.
#include "engine/graph/builder.h"

#include <cassert>
#include <unordered_map>
#include <unordered_set>

namespace tandem {
namespace {

// Pads absent optional inputs at the end, and checks that the rest is there.
void settle_inputs(const NodeView& view, Node& node) {
  const std::vector<Port>& ports = node.op->inputs;
  const bool variadic = !ports.empty() && ports.back().variadic;
  const std::size_t least = ports.size() - (variadic ? 1 : 0);
  if (node.inputs.size() < least) node.inputs.resize(least);
  if (!variadic && node.inputs.size() > ports.size()) {
    view.fail("too many inputs", std::to_string(ports.size()), std::to_string(node.inputs.size()));
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Port& port = i < ports.size() ? ports[i] : ports.back();
    if (!node.inputs[i] && !port.optional) view.fail("input '" + port.name + "' is missing");
    assert(node.inputs[i].index < static_cast<std::int32_t>(view.graph.values.size()));
  }
}

// 8-bit floats are storage: what computes takes them once they are converted.
void check_storage(const NodeView& view) {
  if (view.node.op->takes_float8) return;
  const std::vector<Port>& ports = view.node.op->inputs;
  for (std::size_t i = 0; i < view.input_count(); ++i) {
    if (!view.has_input(i) || !is_float8(view.input(i).dtype)) continue;
    const Port& port = i < ports.size() ? ports[i] : ports.back();
    view.fail("element type of '" + port.name + "'", "a type to compute with",
              std::string(name_of(view.input(i).dtype)),
              "8-bit floats are stored, moved and converted only: Cast to float32 first");
  }
}

// Fills defaults. A wrong name or type here is an error of the caller, not of a model.
void settle_attributes(const Operator& op, Attributes& attributes) {
  for (const AttributeSpec& spec : op.attributes) {
    const AttributeValue* given = attributes.find(spec.name);
    assert((given != nullptr || !spec.required) && "a required attribute is missing");
    if (given == nullptr) {
      attributes.set(spec.name, spec.value);
    } else {
      assert(given->index() == spec.value.index() && "an attribute has the wrong type");
    }
  }
  assert(attributes.entries().size() == op.attributes.size() && "an attribute is not declared");
}

}  // namespace

struct GraphBuilder::Names {
  std::unordered_set<std::string> taken;
  std::unordered_map<std::string, int> next;  // by stem: the first number not tried yet
};

GraphBuilder::GraphBuilder(const OperatorSet& operators, Graph graph)
    : operators_(operators), graph_(std::move(graph)), names_(std::make_shared<Names>()) {
  for (const Value& value : graph_.values) names_->taken.insert(value.name);
}

std::string GraphBuilder::unique_name(std::string wanted) {
  if (!names_) names_ = std::make_shared<Names>();
  if (names_->taken.insert(wanted).second) return wanted;
  int& number = names_->next[wanted];
  for (;;) {
    std::string name = wanted + "_" + std::to_string(++number);
    if (names_->taken.insert(name).second) return name;
  }
}

ValueId GraphBuilder::new_value(Value value) {
  graph_.values.push_back(std::move(value));
  return ValueId{static_cast<std::int32_t>(graph_.values.size()) - 1};
}

std::vector<ValueId> GraphBuilder::node(std::string_view op, std::vector<ValueId> inputs,
                                        Attributes attributes, std::shared_ptr<const Graph> body) {
  Node node;
  node.op = &operators_.get(op);
  node.attributes = std::move(attributes);
  node.inputs = std::move(inputs);
  node.path = scope_.path;
  node.phase = scope_.phase;
  node.origins = scope_.origins;
  if (node.origins.empty() && !node.path.empty()) node.origins = {node.path};
  node.body = std::move(body);

  const NodeView view{graph_, node};
  settle_inputs(view, node);
  check_storage(view);
  settle_attributes(*node.op, node.attributes);
  const std::vector<TensorType> types = node.op->infer(view);
  assert(!node.op->outputs.empty());
  assert(has_outputs(*node.op, types.size()));

  if (!names_) names_ = std::make_shared<Names>();
  const std::string stem = (node.path.empty() ? node.op->name : node.path) + ":";
  const NodeId id{static_cast<std::int32_t>(graph_.nodes.size())};
  for (std::size_t i = 0; i < types.size(); ++i) {
    std::string name;
    do {
      name = stem + std::to_string(names_->next[stem]++);
    } while (!names_->taken.insert(name).second);
    Value value;
    value.name = std::move(name);
    value.type = types[i];
    value.producer = id;
    value.output_index = static_cast<std::int32_t>(i);
    node.outputs.push_back(new_value(std::move(value)));
  }
  std::vector<ValueId> outputs = node.outputs;
  graph_.nodes.push_back(std::move(node));
  return outputs;
}

ValueId GraphBuilder::input(std::string name, TensorType type) {
  Value value;
  value.name = unique_name(name);
  value.type = std::move(type);
  value.kind = ValueKind::input;
  const ValueId id = new_value(std::move(value));
  graph_.inputs.push_back({std::move(name), id});
  return id;
}

ValueId GraphBuilder::constant(HostTensor tensor, std::string name) {
  Value value;
  value.name = unique_name(name.empty() ? "constant" : std::move(name));
  value.type = tensor.type();
  value.kind = ValueKind::constant;
  value.constant = std::make_shared<const HostTensor>(std::move(tensor));
  return new_value(std::move(value));
}

ValueId GraphBuilder::scalar(double value, DType dtype) { return filled(value, {dtype, {}}); }

ValueId GraphBuilder::filled(double value, TensorType type) {
  HostTensor numbers(TensorType{DType::float64, type.shape});
  for (double& number : numbers.as<double>()) number = value;
  return constant(numbers.converted(type.dtype));
}

ValueId GraphBuilder::state(State state) {
  Value value;
  value.name = unique_name(state.name);
  value.type = state.start.type();
  value.kind = ValueKind::state;
  const ValueId id = new_value(std::move(value));
  state.initial = id;
  state.final = id;
  graph_.states.push_back(std::move(state));
  return id;
}

void GraphBuilder::write_state(ValueId initial, ValueId final) {
  for (State& state : graph_.states) {
    if (!(state.initial == initial)) continue;
    assert(type(initial) == type(final));
    state.final = final;
    return;
  }
  assert(false && "not the initial value of a state");
}

void GraphBuilder::output(std::string name, ValueId value) {
  graph_.outputs.push_back({std::move(name), value});
}

void GraphBuilder::rename(ValueId value, std::string name) {
  if (graph_.value(value).name == name) return;
  if (names_) names_->taken.erase(graph_.value(value).name);
  graph_.value(value).name = unique_name(std::move(name));
}

ValueId GraphBuilder::cast(ValueId x, DType to) {
  if (dtype(x) == to) return x;
  if (is_float8(dtype(x))) return cast(add_node("FromFloat8", {x}), to);
  if (is_float8(to)) {
    x = cast(x, DType::float32);
    return add_node("ToFloat8", {x}, {{"to", std::string(name_of(to))}});
  }
  return add_node("Cast", {x}, {{"to", std::string(name_of(to))}});
}

ValueId GraphBuilder::reshape(ValueId x, Shape to) {
  if (shape(x) == to) return x;
  return add_node("Reshape", {x}, {{"shape", std::move(to)}});
}

ValueId GraphBuilder::expand(ValueId x, Shape to) {
  if (shape(x) == to) return x;
  return add_node("Expand", {x}, {{"shape", std::move(to)}});
}

ValueId GraphBuilder::transpose(ValueId x, Ints perm) {
  bool moves = false;
  for (std::size_t i = 0; i < perm.size(); ++i) moves |= perm[i] != static_cast<std::int64_t>(i);
  return moves ? add_node("Transpose", {x}, {{"perm", std::move(perm)}}) : x;
}

ValueId GraphBuilder::transpose_last_two(ValueId x) {
  const std::size_t rank = shape(x).size();
  assert(rank >= 2);
  Ints perm(rank);
  for (std::size_t i = 0; i < rank; ++i) perm[i] = static_cast<std::int64_t>(i);
  std::swap(perm[rank - 2], perm[rank - 1]);
  return transpose(x, std::move(perm));
}

ValueId GraphBuilder::reduce_sum(ValueId x, Ints axes, bool keepdims) {
  if (axes.empty()) return x;
  return add_node("ReduceSum", {x},
                  {{"axes", std::move(axes)}, {"keepdims", std::int64_t{keepdims}}});
}

ValueId GraphBuilder::reduce_mean(ValueId x, Ints axes, bool keepdims) {
  if (axes.empty()) return x;
  return add_node("ReduceMean", {x},
                  {{"axes", std::move(axes)}, {"keepdims", std::int64_t{keepdims}}});
}

ValueId GraphBuilder::sum_to(ValueId x, const Shape& wanted) {
  const Shape from = shape(x), to = wanted;  // copies: new nodes move the graph's vectors
  assert(from.size() >= to.size());
  const std::size_t lead = from.size() - to.size();
  Ints axes;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (i < lead || from[i] != to[i - lead]) {
      assert(i < lead || to[i - lead] == 1);
      axes.push_back(static_cast<std::int64_t>(i));
    }
  }
  return reshape(reduce_sum(x, std::move(axes), true), to);
}

}  // namespace tandem
