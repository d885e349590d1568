// Inspects a model: what a `Model` contains, or one of its stages as text.
#include <algorithm>

#include <fmt/format.h>

#include "api/model/engine.h"
#include "api/model/inspected.h"
#include "api/model/sample_loss.h"
#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"
#include "engine/lower/placed_graph.h"
#include "engine/train/steps/micro_batch_programs.h"
#include "placement/report/json.h"
#include "tandem/model.h"

namespace tandem::api {
namespace {

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

void check_stage(const std::string& stage) {
  const std::vector<std::string> known{"graph", "training", "placement", "lowered", "plan"};
  if (stage.empty() || std::find(known.begin(), known.end(), stage) != known.end()) return;
  throw Error(ErrorKind::usage, Diagnostic{.message = "there is no such stage",
                                           .expected = joined(known),
                                           .got = stage,
                                           .fix = did_you_mean(nearest_name(stage, known))});
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

inline namespace v1 {

InspectReport inspect(const std::string& model_path, const InspectOptions& options) {
  check_stage(options.stage);
  check_passes(options.without);
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

}  // namespace v1
}  // namespace tandem::api
