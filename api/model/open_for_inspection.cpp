// Imports a model for inspection, with everything that blocks its training.
#include <algorithm>

#include <fmt/format.h>

#include "api/model/engine.h"
#include "api/model/inspected.h"
#include "engine/gradient/gradient.h"
#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"
#include "engine/lower/lowered.h"
#include "engine/passes/pass.h"
#include "importer/import_graph.h"
#include "placement/match.h"

namespace tandem::api {
namespace {

std::vector<ValueId> trainable(const Graph& graph) {
  std::vector<ValueId> values;
  for (const State& state : graph.states) {
    if (state.kind == StateKind::parameter && state.trainable) values.push_back(state.initial);
  }
  return values;
}

/// The first initializers that might train, with the reasons why they do not; "" where there are
/// none.
std::string why_nothing_trains(const ModelSummary& summary) {
  std::string text;
  constexpr std::size_t shown = 3;
  for (std::size_t i = 0; i < summary.parameters.size() && i <= shown; ++i) {
    const ParameterSummary& p = summary.parameters[i];
    if (i == shown)
      text += fmt::format(", and {} more (--parameters)", summary.parameters.size() - shown);
    else
      text += fmt::format("{}'{}' ({})", i == 0 ? "" : ", ", p.name, p.reason);
  }
  if (text.empty()) return "no float initializer reaches an output";
  return "no float initializer trains: " + text;
}

/// The model with an arbitrary length for each dimension that the file leaves free, to find what
/// reads its parameters; empty where it cannot be imported that way.
Graph with_any_lengths(const OnnxFile& file, const Engine& engine, ImportOptions import,
                       const ModelSummary& summary) {
  constexpr std::int64_t any_length = 16;
  for (const PortSummary& input : summary.inputs) {
    for (std::size_t axis = 1; axis < input.dims.size(); ++axis) {
      const std::string& name = input.dims[axis];
      const bool is_number =
          !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
      const bool is_bound = std::any_of(import.bind.begin(), import.bind.end(),
                                        [&](const auto& one) { return one.first == name; });
      if (!is_number && !is_bound) import.bind.emplace_back(name, any_length);
    }
  }
  TrainingImport training = import_training(file, engine.operators, import);
  const bool is_whole = training.model.summary.problems.empty();
  return is_whole ? std::move(training.model.graph) : Graph();
}

}  // namespace

void check_passes(const std::vector<std::string>& names) {
  const std::vector<std::string> known = pass_names();
  std::vector<Diagnostic> problems;
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    problems.push_back({.message = "there is no such pass",
                        .expected = joined(known),
                        .got = name,
                        .fix = did_you_mean(nearest_name(name, known))});
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

Inspected open_for_inspection(const Engine& engine, const std::string& path,
                              const ModelOptions& options) {
  ImportOptions import;
  import.bind = options.bind;
  for (const auto& [name, extent] : options.bind) {
    if (name == "batch") import.batch = extent;
  }
  import.batch_norm = options.batch_norm;
  import.evaluate = engine.evaluate;
  import.collect_problems = true;
  int number = 0;
  for (const auto& [at, rows] : options.rows) import.rows.push_back({at, rows, "--rows", ++number});
  const OnnxFile file = OnnxFile::open(path);
  Inspected result;
  result.has_training_info = has_training_info(file);
  TrainingImport training = import_training(file, engine.operators, import);
  result.imported = std::move(training.model);
  result.algorithm = std::move(training.algorithm);
  result.problems = result.imported.summary.problems;
  const Graph& graph = result.imported.graph;
  result.counts = counts_of(graph, PolicyItems(graph, {}, {}));
  PassContext context{engine.operators, engine.evaluate, {}, {}};
  result.forward = run_passes(result.imported.graph, context, options.without);
  result.recognised = std::move(context.notes);
  std::vector<ValueId> outputs;
  for (const NamedValue& output : result.forward.outputs) {
    // If the model has its own training, only its loss needs gradients.
    if (result.algorithm == nullptr || output.name == result.algorithm->loss)
      outputs.push_back(output.value);
  }
  for (const Diagnostic& d :
       missing_gradients(result.forward, outputs, trainable(result.forward))) {
    result.problems.push_back({"missing_gradient", "", d.path, d.message + ": " + d.got, d.fix});
  }
  if (result.problems.empty() && trainable(result.forward).empty()) {
    result.problems.push_back({"nothing_trainable", "", "",
                               why_nothing_trains(result.imported.summary),
                               "export the model with its weights as initializers"});
  }
  if (lacks_lengths_alone(result))
    result.named = with_any_lengths(file, engine, import, result.imported.summary);
  if (result.imported.summary.problems.empty())
    result.export_notes = export_notes(file, result.imported);
  if (!result.has_training_info) result.notices = model_notices(result.imported);
  return result;
}

inline namespace v1 {

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const GraphPass& pass : forward_passes()) names.push_back(pass.name);
  for (std::string& name : optional_passes()) names.push_back(std::move(name));
  return names;
}

}  // namespace v1
}  // namespace tandem::api
