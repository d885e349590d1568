#include "engine/training/check_integers.h"

#include <optional>

#include "engine/graph/error.h"
#include "engine/operators/operator.h"

namespace tandem {
namespace {

/// The extent of the class axis that integer labels of this sample shape choose from; nothing for
/// one-hot labels, probabilities, and shapes that do not fit.
std::optional<std::int64_t> class_count(const Shape& logits, const TensorType& labels) {
  if (is_float(labels.dtype) || labels.dtype == DType::boolean || logits.size() < 2)
    return std::nullopt;
  Shape y = labels.shape;  // without the batch
  const Shape x(logits.begin() + 1, logits.end());
  if (y == x) return std::nullopt;
  if (y.size() == x.size() && y.back() == 1) y.pop_back();
  if (y == Shape(x.begin(), x.end() - 1)) return x.back();
  if (y == Shape(x.begin() + 1, x.end())) return x[0];
  return std::nullopt;
}

/// The input of the graph that a value is a copy of (another integer type or shape), or "".
std::string copied_input(const Graph& graph, ValueId id) {
  while (graph.value(id).producer) {
    const Node& node = graph.node(graph.value(id).producer);
    if (node.op->name != "Cast" && node.op->name != "Identity" && node.op->name != "Reshape")
      return "";
    id = node.inputs[0];
  }
  for (const NamedValue& input : graph.inputs) {
    if (input.value == id) return input.name;
  }
  return "";
}

void check(const DataSource& source, const std::string& field, std::int64_t limit,
           const std::int64_t* ignore, const std::string& meaning,
           std::vector<Diagnostic>& problems) {
  const int index = source.find_field(field);
  if (index < 0) return;
  const DType dtype = source.fields()[static_cast<std::size_t>(index)].sample.dtype;
  if (is_float(dtype) || dtype == DType::boolean) return;
  try {
    source.check_range(index, limit, ignore);
  } catch (const Error& error) {
    for (Diagnostic d : error.diagnostics()) {
      d.message += ": " + meaning;
      problems.push_back(std::move(d));
    }
  }
}

/// Labels of a loss inside the model.
void check_loss_node(const Graph& graph, const Node& node, const DataSource& source,
                     std::vector<Diagnostic>& problems) {
  if (node.op->name != "SoftmaxCrossEntropy" && node.op->name != "NegativeLogLikelihood") return;
  const std::string input = copied_input(graph, node.inputs[1]);
  if (input.empty()) return;
  std::optional<std::int64_t> ignore;
  if (node.inputs.size() > 2 && node.inputs[2] && graph.value(node.inputs[2]).producer) {
    const Node& weights = graph.node(graph.value(node.inputs[2]).producer);
    if (weights.op->name != "LabelWeights") return;
    if (weights.attributes.flag("ignore")) ignore = weights.attributes.integer("ignore_index");
  }
  check(source, input, graph.type(node.inputs[0]).shape[1], ignore ? &*ignore : nullptr,
        "a label is not a class at " + node.path, problems);
}

}  // namespace

void check_integer_fields(const RunConfig& config, const Graph& forward, const DataSource& source) {
  std::vector<Diagnostic> problems;
  for (const LossTerm& term : config.loss.terms) {
    if (term.kind != LossKind::softmax_cross_entropy) continue;
    const NamedValue* output = forward.find_output(term.logits);
    const int field = source.find_field(term.labels);
    if (output == nullptr || field < 0) continue;
    const auto classes =
        class_count(forward.type(output->value).shape, source.fields()[field].sample);
    if (!classes) continue;
    check(source, term.labels, *classes, term.ignore_index ? &*term.ignore_index : nullptr,
          "a label is not a class of \"" + term.logits + "\"", problems);
  }
  for (const Node& node : forward.nodes) check_loss_node(forward, node, source, problems);
  for (const Node& node : forward.nodes) {
    if (node.op->name != "Gather" || forward.value(node.inputs[0]).kind != ValueKind::state)
      continue;
    const std::int64_t rows = forward.type(node.inputs[0]).shape[node.attributes.integer("axis")];
    const std::string input = copied_input(forward, node.inputs[1]);
    if (!input.empty()) check(source, input, rows, nullptr, "an index of " + node.path, problems);
  }
  if (!problems.empty()) throw Error(ErrorKind::data, std::move(problems));
}

}  // namespace tandem
