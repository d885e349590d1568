// Inspects a model: its parts, what is trainable and why, what blocks training; and every stage as
// text.
#include <algorithm>

#include <fmt/format.h>

#include "api/model/engine.h"
#include "api/model/inspected.h"
#include "api/model/sample_loss.h"
#include "engine/gradient/gradient.h"
#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"
#include "engine/lower/placed_graph.h"
#include "engine/train/steps/micro_batch_programs.h"
#include "importer/import_graph.h"
#include "placement/match.h"
#include "placement/report/json.h"
#include "tandem/tandem.h"

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

/// Adds a problem for parameters of 16 bits, which no optimizer updates.
void add_types_without_update(Inspected& inspected) {
  std::int64_t count = 0;
  const State* first = nullptr;
  for (const State& state : inspected.forward.states) {
    const DType dtype = state.start.dtype();
    const bool trains = state.kind == StateKind::parameter && state.trainable;
    if (!trains || (dtype != DType::float16 && dtype != DType::bfloat16)) continue;
    if (++count == 1) first = &state;
  }
  if (first == nullptr) return;
  inspected.problems.push_back(
      {"parameter_type", "", first->path,
       fmt::format("no optimizer updates a parameter of {}", name_of(first->start.dtype())),
       "write the model with its parameters in float32 (precision.compute makes products of 16 "
       "bits), or keep them as they are by parameters.freeze",
       count});
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

Inspected open_for_inspection(const Engine& engine, const std::string& path,
                              const InspectOptions& options) {
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
  add_types_without_update(result);
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

TrainingGraph sample_training_graph(const Engine& engine, const Inspected& inspected) {
  RunConfig config;
  TrainingRequest request;
  request.config = &config;
  request.evaluate = engine.evaluate;
  request.algorithm = inspected.algorithm;
  return build_training_graph(
      engine.operators,
      inspected.algorithm ? inspected.forward : with_sample_loss(engine, inspected.forward),
      request);
}

Json placement_object(const Placement& placement, const Graph& graph) {
  Json nodes = Json::array(), states = Json::array();
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    nodes.push_back({{"path", graph.nodes[i].path},
                     {"op", graph.nodes[i].op->name},
                     {"device", placement.devices[placement.nodes[i].device]},
                     {"reason", placement.nodes[i].reason}});
  }
  for (std::size_t i = 0; i < graph.states.size(); ++i) {
    const PlacedState& state = placement.states[i];
    states.push_back({{"name", graph.states[i].name},
                      {"state", placement.devices[state.state]},
                      {"param", placement.devices[state.param]},
                      {"reason", state.reason}});
  }
  return {{"devices", placement.devices}, {"nodes", nodes}, {"states", states}};
}

std::string placement_text(const Placement& placement, const Graph& graph) {
  std::string text = "devices:";
  for (const std::string& device : placement.devices) text += " " + device;
  text += "\nnodes\n";
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const PlacedNode& placed = placement.nodes[i];
    text += fmt::format("  {:<8} {} {} ({})\n", placement.devices[placed.device],
                        graph.nodes[i].op->name, graph.nodes[i].path, placed.reason);
  }
  text += "states\n";
  for (std::size_t i = 0; i < graph.states.size(); ++i) {
    const PlacedState& placed = placement.states[i];
    text += fmt::format("  state {:<8} param {:<8} {} ({})\n", placement.devices[placed.state],
                        placement.devices[placed.param], graph.states[i].name, placed.reason);
  }
  return text;
}

/// The stage as text; `json` gets it as an object too, where the stage has one.
std::string stage_text(const Engine& engine, const Inspected& inspected,
                       const InspectOptions& options, Json& json) {
  if (options.stage == "graph") return to_text(inspected.forward);
  const TrainingGraph training = sample_training_graph(engine, inspected);
  if (options.stage == "training") return to_text(training.graph);
  const Placement placement = place_everything(training.graph);
  if (options.stage == "placement") {
    json["placement"] = placement_object(placement, training.graph);
    return placement_text(placement, training.graph);
  }
  StateStore states;
  ProgramOptions program_options;
  program_options.lower.disabled_passes = options.without;
  Program program(training.graph, placement, engine.operators, engine.devices(), states,
                  make_arenas(), program_options);
  if (options.stage == "lowered") return to_text(program.lowered());
  return to_text(program.plan(), program.lowered());
}

void check_options(const InspectOptions& options) {
  std::vector<Diagnostic> problems;
  const auto check = [&](const std::string& what, const std::string& name,
                         const std::vector<std::string>& known) {
    if (std::find(known.begin(), known.end(), name) != known.end()) return;
    problems.push_back({.message = "there is no such " + what,
                        .expected = joined(known),
                        .got = name,
                        .fix = did_you_mean(nearest_name(name, known))});
  };
  if (!options.stage.empty())
    check("stage", options.stage, {"graph", "training", "placement", "lowered", "plan"});
  for (const std::string& pass : options.without) check("pass", pass, pass_names());
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

/// The stage, then the known problems; only the problems where the stage cannot be made.
std::string stage_with_problems(const Engine& engine, const Inspected& inspected,
                                const InspectOptions& options, Json& json) {
  try {
    const std::string text = stage_text(engine, inspected, options, json);
    json["stage"] = options.stage;
    json["text"] = text;
    return inspected.problems.empty() ? text : text + "\n" + problems_text(inspected);
  } catch (const Error&) {
    if (inspected.problems.empty()) throw;
    return "the stage \"" + options.stage + "\" cannot be made\n" + problems_text(inspected);
  }
}

}  // namespace

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const GraphPass& pass : forward_passes()) names.push_back(pass.name);
  for (std::string& name : optional_passes()) names.push_back(std::move(name));
  return names;
}

InspectReport inspect(const std::string& model_path, const InspectOptions& options) {
  check_options(options);
  const Engine engine;
  const Inspected inspected = open_for_inspection(engine, model_path, options);
  InspectReport report;
  report.blocks_training = !inspected.problems.empty();
  Json json = to_json(inspected);
  if (options.stage.empty()) {
    report.text = to_text(inspected, model_path, options.parameters);
  } else {
    report.text = stage_with_problems(engine, inspected, options, json);
  }
  report.json = json_text(json);
  return report;
}

}  // namespace tandem::api
