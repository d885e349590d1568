#include "engine/training/check_integers.h"

#include <algorithm>
#include <map>
#include <optional>

#include "engine/graph/error.h"
#include "engine/operators/operator.h"
#include "engine/operators/rows.h"
#include "engine/training/data/bounded_source.h"

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
    // Ids of cached rows go elsewhere, all others to the table as they are.
    const bool of_table = node.op->name == "SplitIds" && graph.value(id).output_index == 0;
    if (!of_table && node.op->name != "Cast" && node.op->name != "Identity" &&
        node.op->name != "Reshape")
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

/// The value of an input that `ids`, a copy of it, are absent for; nothing where its type or a type
/// between cannot hold that.
std::optional<std::int64_t> absent_value(const Graph& graph, ValueId ids) {
  const DType looked_up = graph.type(ids).dtype;
  for (;; ids = graph.node(graph.value(ids).producer).inputs[0]) {
    const DType dtype = graph.type(ids).dtype;
    if (dtype != DType::int64 && dtype != looked_up) return std::nullopt;
    if (!graph.value(ids).producer) return absent_id_of(looked_up);
  }
}

/// A field of the data that chooses rows of a parameter.
struct LookUp {
  std::string field, path, table;
  std::int64_t rows = 0;
  DType ids = DType::int64;            // as they are looked up
  std::optional<std::int64_t> absent;  // the field's value that names no row
};

std::vector<LookUp> look_ups(const Graph& graph) {
  std::vector<LookUp> found;
  for (const Node& node : graph.nodes) {
    const bool sums = node.op->name == "EmbeddingBag";
    if (node.op->name != "Gather" && !sums) continue;
    const Value& table = graph.value(node.inputs[0]);
    if (table.kind != ValueKind::state) continue;
    const std::string field = copied_input(graph, node.inputs[1]);
    if (field.empty()) continue;
    const std::int64_t axis = sums ? 0 : node.attributes.integer("axis");
    const ValueId ids = node.inputs[1];
    found.push_back({field, node.path, table.name, table.type.shape[axis], graph.type(ids).dtype,
                     absent_value(graph, ids)});
  }
  return found;
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

std::shared_ptr<const DataSource> zero_out_of_range(const RunConfig& config, const Graph& forward,
                                                    std::shared_ptr<const DataSource> source) {
  if (!source || !config.data) return source;
  std::map<int, IdBound> bounds;
  for (const FieldConfig& field : config.data->fields) {
    if (field.out_of_range != OutOfRange::zero) continue;
    const int index = source->find_field(field.name);
    if (index < 0) continue;
    Diagnostic d{.message = "out_of_range is for ids that look up rows of a parameter",
                 .file = field.where.file,
                 .line = field.where.line,
                 .column = field.where.column,
                 .path = "data.fields." + field.name};
    const DType own = source->fields()[static_cast<std::size_t>(index)].sample.dtype;
    for (const LookUp& look_up : look_ups(forward)) {
      if (look_up.field != field.name) continue;
      const bool fits = look_up.absent && (own == DType::int64 || own == look_up.ids);
      IdBound& bound = bounds.emplace(index, IdBound{look_up.rows, 0}).first->second;
      if (!fits || (bound.outside != 0 && bound.outside != *look_up.absent)) {
        d.message = "no id of this field names no row after the casts before its look-ups";
        d.expected = std::string(name_of(look_up.ids)) + " ids, as " + look_up.path + " takes them";
        d.got = name_of(own);
        d.fix = "export the model with ids of that type, or leave out_of_range away";
        throw Error(ErrorKind::usage, std::move(d));
      }
      bound = {std::min(bound.limit, look_up.rows), *look_up.absent};
    }
    if (!bounds.contains(index)) throw Error(ErrorKind::usage, std::move(d));
  }
  return make_bounded_source(std::move(source), std::move(bounds));
}

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
  for (const LookUp& look_up : look_ups(forward)) {
    check(source, look_up.field, look_up.rows, look_up.absent ? &*look_up.absent : nullptr,
          "an index of " + look_up.path + " into \"" + look_up.table + "\", which has " +
              std::to_string(look_up.rows) + " rows",
          problems);
  }
  if (!problems.empty()) throw Error(ErrorKind::data, std::move(problems));
}

}  // namespace tandem
