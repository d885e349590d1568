#include "importer/bodies.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "importer/file/initializers.h"
#include "importer/file/tensor_data.h"
#include "importer/operators/float8.h"
#include "importer/walk.h"

namespace tandem::importer {
namespace {

const onnx::GraphProto& graph_of(NodeContext& node, const char* name) {
  const onnx::AttributeProto* attribute = node.attribute(name);
  if (attribute == nullptr || !attribute->has_g()) node.fail(fmt::format("{} is missing", name));
  return attribute->g();
}

// Operators whose results and slopes are finite wherever what they read is finite and not huge, and
// whose results depend on nothing but that.
bool is_tame_operator(const onnx::NodeProto& node) {
  static const std::unordered_set<std::string> names{
      "Abs",     "Add",        "And",         "Cast",      "CastLike",  "Concat",  "Constant",
      "Conv",    "Elu",        "Equal",       "Erf",       "Expand",    "Flatten", "Gelu",
      "Gemm",    "Greater",    "HardSigmoid", "Identity",  "LeakyRelu", "Less",    "MatMul",
      "Max",     "Min",        "Mul",         "Neg",       "Not",       "Or",      "Relu",
      "Reshape", "ReduceMean", "ReduceSum",   "Shape",     "Sigmoid",   "Softmax", "Squeeze",
      "Sub",     "Sum",        "Tanh",        "Transpose", "Unsqueeze", "Where"};
  return domain_of(node.domain()).empty() && names.count(node.op_type()) > 0;
}

// What the nodes of a graph read, in the graphs inside of them too.
std::vector<std::string> reads_in(const onnx::GraphProto& graph) {
  std::unordered_set<std::string> seen;
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (seen.insert(name).second) names.push_back(name);
  };
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& name : reads_of(node)) add(name);
  }
  for (const onnx::ValueInfoProto& output : graph.output()) add(output.name());
  return names;
}

bool is_trained(const Graph& graph, const Term& x) {
  return std::any_of(graph.states.begin(), graph.states.end(),
                     [&](const State& state) { return state.initial == x.id && state.trainable; });
}

// Zeros where the condition is not `taken`. What is known before the run stays, and what nothing
// flows back to.
Term gated(NodeContext& node, const Term& condition, bool taken, const Term& x) {
  if (x.bad || x.is_constant() || (!x.id && !x.sequence)) return x;
  if (x.sequence) {
    std::vector<Term> parts;
    for (const Term& part : *x.sequence) parts.push_back(gated(node, condition, taken, part));
    Term result;
    result.sequence = std::make_shared<const std::vector<Term>>(std::move(parts));
    return result;
  }
  const Graph& graph = node.session().builder.graph();
  const bool is_buffer =
      x.id && graph.value(x.id).kind == ValueKind::state && !is_trained(graph, x);
  if (x.type.dtype == DType::boolean || is_float8(x.type.dtype) || is_buffer) return x;
  const Term zero = node.scalar(0, x.type.dtype);
  return node.make("Where", {condition, taken ? x : zero, taken ? zero : x});
}

}  // namespace

Body::Body(NodeContext& node, const char* attribute)
    : node_(node), graph_(graph_of(node, attribute)), attribute_(attribute) {
  is_tame_ = std::all_of(graph_.node().begin(), graph_.node().end(), is_tame_operator);
  // Finds the nodes whose inputs are the same in every run. Each name refers to one value.
  const Scope& outer = node.scope();
  std::unordered_set<std::string> fixed;
  for (const onnx::TensorProto& tensor : graph_.initializer()) {
    const auto is_it = [&](const auto& input) { return input.name() == tensor.name(); };
    if (std::any_of(graph_.input().begin(), graph_.input().end(), is_it)) continue;
    kept_[tensor.name()] =
        node.session().constant(read_tensor(tensor, node.session().file, tensor.name()));
    fixed.insert(tensor.name());
  }
  for (const onnx::NodeProto& each : graph_.node()) {
    const bool repeats =
        is_tame_operator(each) &&
        std::all_of(each.input().begin(), each.input().end(), [&](const std::string& name) {
          return name.empty() || fixed.count(name) > 0 || outer.find(name) != nullptr;
        });
    repeats_.push_back(repeats);
    if (repeats) fixed.insert(each.output().begin(), each.output().end());
  }
}

std::vector<Term> Body::run(const std::vector<Term>& inputs, const std::string& part) {
  return run(inputs, part, {});
}

std::vector<Term> Body::run_where(const Term& condition, bool taken,
                                  const std::vector<Term>& inputs, const std::string& part) {
  if (is_tame_) return run(inputs, part, {});
  std::vector<Term> seen;
  for (const Term& input : inputs) seen.push_back(gated(node_, condition, taken, input));
  Names captured;
  const Scope& outer = node_.scope();
  for (const std::string& name : reads_in(graph_)) {
    const Term* term = outer.find(name);
    if (term != nullptr) captured[name] = gated(node_, condition, taken, *term);
  }
  return run(seen, part, std::move(captured));
}

std::vector<Term> Body::run(const std::vector<Term>& inputs, const std::string& part,
                            Names captured) {
  Session& session = node_.session();
  const Scope& outer = node_.scope();
  Scope inner = inside(outer, session);
  if (!part.empty() && !outer.fixed_path) {
    inner.path = node_.path() + "." + part;
    inner.module = session.modules.module_scope(node_.node()).value_or("");
  }
  inner.key = outer.key + first_output(node_.node()) + "/" + attribute_ + "/" + part + "/";
  const bool is_gated = !captured.empty();
  inner.names = std::move(captured);
  inner.names.insert(kept_.begin(), kept_.end());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    inner.names[graph_.input(static_cast<int>(i)).name()] = inputs[i];
  for (int n = 0; n < graph_.node_size(); ++n) {
    const bool repeats = repeats_[static_cast<std::size_t>(n)] && !is_gated;
    if (repeats && !is_first_) continue;
    const onnx::NodeProto& each = graph_.node(n);
    lower_node(session, inner, each);
    if (!repeats) continue;
    for (const std::string& output : each.output()) {
      const Term* made = inner.find(output);
      if (made != nullptr) kept_[output] = *made;
    }
  }
  is_first_ = is_first_ && is_gated;
  std::vector<Term> outputs;
  for (const onnx::ValueInfoProto& output : graph_.output()) {
    const Term* term = inner.find(output.name());
    if (term == nullptr) node_.fail(fmt::format("{} makes no '{}'", attribute_, output.name()));
    outputs.push_back(*term);
  }
  return outputs;
}

std::vector<Term> Body::captured() const {
  std::vector<Term> terms;
  const Scope& outer = node_.scope();
  for (const std::string& name : reads_in(graph_)) {
    if (const Term* term = outer.find(name)) terms.push_back(*term);
  }
  return terms;
}

Unrolling::Unrolling(NodeContext& node)
    : node_(node), first_node_(node.session().nodes), problems_(problems()) {}

bool Unrolling::next() {
  Session& session = node_.session();
  ++session.nodes;
  const std::int64_t most = session.file.limits.nodes / 10;
  if (session.nodes - first_node_ > most) {
    node_.unsupported(
        fmt::format("its iterations, one after the other, are more than {} nodes", most),
        "fewer iterations, or LSTM, GRU or RNN in its place");
  }
  return is_sound();
}

std::size_t Unrolling::problems() const {
  return node_.session().reports.size() + node_.session().asked;
}

bool Unrolling::is_sound() const { return problems() == problems_; }

StateGuard::StateGuard(NodeContext& node) : node_(node) {
  for (const State& state : node.session().builder.graph().states) finals_.push_back(state.final);
}

void StateGuard::check() const {
  const auto& states = node_.session().builder.graph().states;
  for (std::size_t i = 0; i < finals_.size(); ++i) {
    if (states[i].final == finals_[i]) continue;
    node_.unsupported(
        fmt::format("'{}' is written inside of it, and data decides whether that counts",
                    states[i].name),
        "batch_norm = \"inference\" trains the rest of the model");
  }
}

Term choose(NodeContext& node, const Term& condition, const Term& x, const Term& y,
            const std::string& what) {
  if (x.bad || y.bad) return x.bad ? x : y;
  const auto kind = [](const Term& term) -> std::string {
    if (term.none) return "an optional without a value";
    if (term.sequence) return fmt::format("a sequence of {} tensors", term.sequence->size());
    return to_string(term.type);
  };
  const bool same = x.none == y.none && !x.sequence == !y.sequence &&
                    (x.sequence ? x.sequence->size() == y.sequence->size() : x.type == y.type);
  if (!same) {
    node.unsupported(fmt::format("{} is {} or {}, by a condition that is known only in the run",
                                 what, kind(x), kind(y)),
                     "one type and shape in both cases, or a condition on shapes and constants");
  }
  if (x.none) return x;
  if (x.sequence) {
    std::vector<Term> parts;
    for (std::size_t i = 0; i < x.sequence->size(); ++i)
      parts.push_back(choose(node, condition, (*x.sequence)[i], (*y.sequence)[i], what));
    Term result;
    result.sequence = std::make_shared<const std::vector<Term>>(std::move(parts));
    return result;
  }
  if ((x.id && x.id == y.id) || (x.constant && x.constant == y.constant)) return x;
  return operators::chosen(node, condition, x, y);
}

Term scalar_condition(NodeContext& node, const Term& condition) {
  if (condition.sequence || condition.type.dtype != DType::boolean ||
      condition.type.elements() != 1) {
    node.fail("condition", "one boolean", to_string(condition.type));
  }
  return node.reshape(condition, {});
}

void out_of_body(NodeContext& node, std::size_t i, Term term, std::size_t first_node) {
  if (!node.wants(i)) return;
  Session& session = node.session();
  if (node.scope().main && term.id) {
    const Value& value = session.builder.graph().value(term.id);
    if (value.kind == ValueKind::computed &&
        static_cast<std::size_t>(value.producer.index) >= first_node)
      session.builder.rename(term.id, name_in_graph(node.node().output(static_cast<int>(i)), term));
  }
  node.out(i, std::move(term));
}

void out_bad(NodeContext& node) {
  Term bad;
  bad.bad = true;
  for (std::size_t i = 0; i < node.output_count(); ++i) node.out(i, bad);
}

std::vector<Term> unstacked(NodeContext& node, const Term& x, std::int64_t axis) {
  const std::int64_t count = x.type.shape[static_cast<std::size_t>(axis)];
  Shape shape = x.type.shape;
  shape.erase(shape.begin() + axis);
  if (count == 0) return {};
  if (count == 1) return {node.reshape(x, shape)};
  std::vector<Term> parts = node.make_all(
      "Split", {x}, {{"axis", axis}, {"sizes", Ints(static_cast<std::size_t>(count), 1)}});
  for (Term& part : parts) part = node.reshape(part, shape);
  return parts;
}

Term stacked(NodeContext& node, std::vector<Term> parts, std::int64_t axis) {
  for (Term& part : parts) {
    Shape shape = part.type.shape;
    shape.insert(shape.begin() + axis, 1);
    part = node.reshape(part, shape);
  }
  return parts.size() == 1 ? parts[0] : node.make("Concat", parts, {{"axis", axis}});
}

}  // namespace tandem::importer
