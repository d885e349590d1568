// Reads the facts of a model file: shapes under bindings, tables, operators, bytes of a step.
#include <algorithm>
#include <set>

#include "api/init/facts.h"
#include "api/init/roles.h"
#include "api/trained/class_words.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"
#include "engine/operators/tables/table_nodes.h"
#include "engine/train/tables/column_lookups.h"
#include "importer/inputs/bindable_inputs.h"

namespace tandem::api {
namespace {

/// A batch size that is unlikely to equal another extent of the model.
constexpr std::int64_t probe_batch = 7;

TrainingImport import_for(const Engine& engine, const OnnxFile& file, ImportOptions options,
                          std::int64_t batch) {
  options.batch = batch;
  return import_training(file, engine.operators, options);
}

bool is_free_dimension(const Problem& problem) { return problem.kind == "free_dimension"; }

bool blocks(const std::vector<Problem>& problems) {
  return !std::all_of(problems.begin(), problems.end(), is_free_dimension);
}

/// The fed value that ids come from, through operators that only change their shape or type.
std::string input_of(const Graph& graph, ValueId id) {
  for (int hops = 0; id && hops < 64; ++hops) {
    const Value& value = graph.value(id);
    if (value.kind == ValueKind::input) {
      for (const NamedValue& input : graph.inputs) {
        if (input.value == id) return input.name;
      }
    }
    if (value.kind != ValueKind::computed || !value.producer) return "";
    static const std::set<std::string, std::less<>> forms{
        "Cast",   "Reshape", "Flatten", "Squeeze",  "Unsqueeze", "Transpose", "Slice",
        "Gather", "Split",   "Expand",  "Identity", "View",      "Reverse",   "Concat"};
    const Node& node = graph.node(value.producer);
    if (!forms.contains(std::string(node.op->name)) || node.inputs.empty()) return "";
    id = node.inputs[0];
  }
  return "";
}

std::vector<TableFacts> tables_of(const Graph& graph) {
  std::vector<TableFacts> tables;
  for (const State& state : graph.states) {
    if (state.kind != StateKind::parameter || !state.trainable || state.start.shape().size() != 2)
      continue;
    for (const Node& node : graph.nodes) {
      if (!is_row_lookup(node) || node.inputs[0] != state.initial) continue;
      if (graph.is_constant(node.inputs[1])) continue;  // positions, which are always the same rows
      tables.push_back({state.name, state.path, state.start.shape()[0], state.start.shape()[1],
                        input_of(graph, node.inputs[1]), only_lookups_read(graph, state.initial)});
      break;
    }
  }
  return tables;
}

/// Finds inputs whose elements look up rows of different tables, or of parts of one.
void add_input_rows(const Engine& engine, ModelFacts& facts) {
  const Graph& graph = facts.imported.graph;
  const std::vector<ColumnLookup> lookups = column_lookups(graph, engine.evaluate);
  for (const NamedValue& input : graph.inputs) {
    const TensorType& type = graph.type(input.value);
    if (type.rank() != 2 || type.shape[0] < 1) continue;
    std::vector<std::int64_t> rows = rows_of_elements(lookups, input.name, type.shape[1]);
    const bool differ = std::any_of(rows.begin(), rows.end(),
                                    [&](std::int64_t own) { return own != rows.front(); });
    // Skips several tables with equal rows, and one table that all look up: these concern the input
    // as a whole.
    const bool are_all =
        std::all_of(rows.begin(), rows.end(), [](std::int64_t r) { return r > 0; });
    const bool is_one = std::any_of(lookups.begin(), lookups.end(), [&](const ColumnLookup& l) {
      return l.input == input.name &&
             std::all_of(l.offsets.begin(), l.offsets.end(),
                         [&](std::int64_t offset) { return offset == l.offsets.front(); });
    });
    if (!are_all || (!differ && is_one)) continue;
    std::vector<std::string> tables(rows.size());
    for (const ColumnLookup& lookup : lookups) {
      const auto reads = [](std::int64_t offset) { return offset != ColumnLookup::unread; };
      const bool is_own =
          lookup.input == input.name && lookup.offsets.size() == tables.size() &&
          std::count_if(lookup.offsets.begin(), lookup.offsets.end(), reads) == 1 &&
          std::count_if(lookups.begin(), lookups.end(), [&](const ColumnLookup& other) {
            return other.parameter == lookup.parameter;
          }) == 1;
      if (!is_own) continue;
      const auto element = std::find_if(lookup.offsets.begin(), lookup.offsets.end(), reads);
      const State* const state = graph.find_state(lookup.parameter);
      if (*element != 0 || state == nullptr || !only_lookups_read(graph, state->initial)) continue;
      tables[static_cast<std::size_t>(element - lookup.offsets.begin())] =
          state->path.empty() ? state->name : state->path;
    }
    facts.input_rows[input.name] = {std::move(rows), std::move(tables)};
  }
}

[[noreturn]] void refuse_model(const std::string& path, const std::vector<Problem>& problems) {
  std::vector<Diagnostic> all;
  for (const Problem& p : problems) {
    Diagnostic& d = all.emplace_back();
    d.message = (p.op.empty() ? "" : p.op + ": ") + p.reason;
    d.file = path;
    d.path = p.path;
    d.fix = p.fix.empty() ? "`tandem inspect` says more" : p.fix;
  }
  throw Error(ErrorKind::usage, std::move(all));
}

}  // namespace

ModelFacts look_into_model(const Engine& engine, const std::string& path,
                           const std::vector<std::pair<std::string, std::int64_t>>& bind,
                           bool in_stages) {
  const OnnxFile file = OnnxFile::open(path);
  ImportOptions options;
  options.bind = bind;
  options.evaluate = engine.evaluate;
  options.collect_problems = true;
  ModelFacts facts;
  for (const std::string& input : bindable_inputs(file)) {
    if (role_named(input) != Role::switches) continue;
    facts.values[input] = 0;  // without a cache
    options.bind.emplace_back(input, 0);
  }
  facts.path = normal_path(path);
  facts.has_training_info = has_training_info(file);
  TrainingImport import = import_for(engine, file, options, probe_batch);
  facts.batch = probe_batch;
  const StageValues nothing;
  if (blocks(import.model.summary.problems) && in_stages && !facts.has_training_info) {
    options.stage = &nothing;
    TrainingImport first = import_for(engine, file, options, probe_batch);
    if (blocks(first.model.summary.problems)) {
      options.stage = nullptr;
    } else {
      std::erase_if(first.model.graph.outputs, [&](const NamedValue& output) {
        const auto& others = first.model.stage.outputs;
        return std::find(others.begin(), others.end(), output.name) != others.end();
      });
      import = std::move(first);
    }
  }
  if (blocks(import.model.summary.problems)) {
    // A file with a fixed batch size trains with that size.
    TrainingImport as_it_is = import_for(engine, file, options, 0);
    if (as_it_is.model.file_batch == 0 || blocks(as_it_is.model.summary.problems))
      refuse_model(facts.path, import.model.summary.problems);
    import = std::move(as_it_is);
    facts.batch = facts.fixed_batch = import.model.file_batch;
  }
  facts.imported = std::move(import.model);
  facts.algorithm = std::move(import.algorithm);
  const ModelSummary& summary = facts.imported.summary;
  for (const PortSummary& input : summary.inputs) {
    if (input.has_bound) continue;
    for (std::size_t axis = 1; axis < input.dims.size(); ++axis) {
      const std::string& name = input.dims[axis];
      const bool is_number = name.find_first_not_of("0123456789") == std::string::npos;
      if (!is_number && std::find(facts.free.begin(), facts.free.end(), name) == facts.free.end() &&
          std::none_of(bind.begin(), bind.end(), [&](const auto& b) { return b.first == name; }))
        facts.free.push_back(name);
    }
  }
  const FieldWords words = exported_words(file.metadata());
  if (words.size() == 1) facts.words = words.begin()->second;
  if (!summary.problems.empty()) return facts;
  facts.export_notes = export_notes(file, facts.imported);
  if (!facts.has_training_info) facts.notices = model_notices(facts.imported);
  facts.tables = tables_of(facts.imported.graph);
  add_input_rows(engine, facts);
  PassContext context{engine.operators, engine.evaluate, {}, {}};
  facts.forward = run_passes(facts.imported.graph, context, {});
  for (const Value& value : facts.forward.values) {
    if (value.kind == ValueKind::computed)
      facts.bytes_per_sample += static_cast<double>(value.type.bytes());
  }
  facts.bytes_per_sample /= static_cast<double>(std::max<std::int64_t>(facts.batch, 1));
  for (const State& state : facts.imported.graph.states) {
    if (state.kind == StateKind::parameter && state.trainable)
      facts.parameter_bytes += static_cast<std::int64_t>(state.start.bytes());
  }
  return facts;
}

bool ModelFacts::mixes_batch_norms() const {
  const auto& all = imported.batch_norms;
  const auto trains = [](const BatchNormUse& use) { return use.file_trains; };
  return !has_training_info && std::any_of(all.begin(), all.end(), trains) &&
         !std::all_of(all.begin(), all.end(), trains);
}

std::int64_t ModelFacts::count(const std::string& op) const {
  const auto found = imported.summary.operators.find(op);
  const std::int64_t in_file = found == imported.summary.operators.end() ? 0 : found->second;
  return in_file + std::count_if(forward.nodes.begin(), forward.nodes.end(),
                                 [&](const Node& node) { return node.op->name == op; });
}

std::vector<PortSummary> ModelFacts::outputs() const {
  std::vector<PortSummary> result;
  for (const NamedValue& output : imported.graph.outputs) {
    const TensorType& type = imported.graph.type(output.value);
    if (!is_float(type.dtype)) continue;
    if (!type.shape.empty() && type.shape[0] != batch) continue;
    result.push_back({output.name, std::string(name_of(type.dtype)), {}, type.shape, true});
  }
  return result;
}

TensorType ModelFacts::sample_of(const PortSummary& input) const {
  TensorType type{dtype_from_name(input.dtype).value_or(DType::float32), {}};
  if (input.has_bound) {
    if (!input.bound.empty()) type.shape.assign(input.bound.begin() + 1, input.bound.end());
    return type;
  }
  for (std::size_t axis = 1; axis < input.dims.size(); ++axis) {
    const std::string& text = input.dims[axis];
    const bool is_number = !text.empty() && text.size() < 12 &&
                           text.find_first_not_of("0123456789") == std::string::npos;
    type.shape.push_back(is_number ? std::stoll(text) : -1);
  }
  return type;
}

}  // namespace tandem::api
