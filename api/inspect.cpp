// What is in a model, what is trainable and why, what blocks training; and every stage as text.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/engine.h"
#include "api/run_files.h"
#include "engine/gradient/gradient.h"
#include "engine/graph/error.h"
#include "tandem/tandem.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

struct Inspected {
  ImportResult imported;
  Graph forward;
  std::vector<std::string> recognised;
  std::vector<Problem> problems;
};

std::vector<ValueId> trainable(const Graph& graph) {
  std::vector<ValueId> values;
  for (const State& state : graph.states) {
    if (state.kind == StateKind::parameter && state.trainable) values.push_back(state.initial);
  }
  return values;
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
  Inspected result{import_graph(OnnxFile::open(path), engine.operators, import), {}, {}, {}};
  result.problems = result.imported.summary.problems;
  PassContext context{engine.operators, engine.evaluate, {}, {}};
  result.forward = run_passes(result.imported.graph, context);
  result.recognised = std::move(context.notes);
  std::vector<ValueId> outputs;
  for (const NamedValue& output : result.forward.outputs) outputs.push_back(output.value);
  for (const Diagnostic& d :
       missing_gradients(result.forward, outputs, trainable(result.forward))) {
    result.problems.push_back({"missing_gradient", d.message, d.path, d.got, d.fix});
  }
  if (result.problems.empty() && trainable(result.forward).empty()) {
    result.problems.push_back({"nothing_trainable", "", "",
                               "no float initializer reaches an output",
                               "export the model with its weights as initializers"});
  }
  return result;
}

/// The model's own scalar loss, or the mean of its first float output: enough to show the stages.
TrainingGraph sample_training_graph(const Engine& engine, const Inspected& inspected) {
  RunConfig config;
  GraphBuilder g(engine.operators, inspected.forward);
  Graph& graph = g.graph();
  ValueId loss;
  for (const NamedValue& output : graph.outputs) {
    if (!loss && is_float(graph.type(output.value).dtype)) loss = output.value;
  }
  if (!loss) {
    Diagnostic d;
    d.message = "the model has no floating-point output to differentiate";
    throw Error(ErrorKind::usage, std::move(d));
  }
  g.set_scope({"loss.total", Phase::forward, {}});
  if (graph.type(loss).elements() != 1) {
    Ints axes;
    for (std::size_t i = 0; i < graph.type(loss).rank(); ++i)
      axes.push_back(static_cast<std::int64_t>(i));
    loss = g.reduce_mean(loss, axes, false);
  }
  graph.outputs = {{"loss", loss}};
  TrainingRequest request;
  request.config = &config;
  request.evaluate = engine.evaluate;
  return build_training_graph(engine.operators, g.finish(), request);
}

std::string stage_text(const Engine& engine, const Inspected& inspected, const std::string& stage) {
  if (stage == "graph") return to_text(inspected.forward);
  const TrainingGraph training = sample_training_graph(engine, inspected);
  if (stage == "training") return to_text(training.graph);
  StateStore states;
  Program program(training.graph, place_everything(training.graph), engine.operators,
                  engine.devices(), states, make_arenas(), {});
  if (stage == "lowered") return to_text(program.lowered());
  return to_text(program.plan(), program.lowered());
}

Json port_json(const PortSummary& port) {
  Json json{{"name", port.name}, {"dtype", port.dtype}, {"dims", port.dims}};
  if (port.has_bound) json["bound"] = port.bound;
  return json;
}

Json to_json(const Inspected& inspected) {
  const ModelSummary& summary = inspected.imported.summary;
  Json json{
      {"producer", summary.producer}, {"ir_version", summary.ir_version}, {"opset", summary.opset}};
  json["inputs"] = json["outputs"] = json["parameters"] = json["problems"] = Json::array();
  for (const PortSummary& port : summary.inputs) json["inputs"].push_back(port_json(port));
  for (const PortSummary& port : summary.outputs) json["outputs"].push_back(port_json(port));
  for (const ParameterSummary& p : summary.parameters) {
    json["parameters"].push_back({{"name", p.name},
                                  {"path", p.path},
                                  {"shape", p.type.shape},
                                  {"dtype", name_of(p.type.dtype)},
                                  {"trainable", p.trainable},
                                  {"reason", p.reason}});
  }
  json["operators"] = summary.operators;
  json["recognised"] = inspected.recognised;
  for (const Problem& p : inspected.problems) {
    json["problems"].push_back({{"kind", p.kind},
                                {"operator", p.op},
                                {"path", p.path},
                                {"reason", p.reason},
                                {"fix", p.fix}});
  }
  return json;
}

std::string port_text(const PortSummary& port) {
  std::string dims;
  for (const std::string& dim : port.dims) dims += (dims.empty() ? "" : ", ") + dim;
  std::string text = fmt::format("  {}: {}[{}]", port.name, port.dtype, dims);
  if (port.has_bound) text += " = " + to_string(port.bound);
  return text + "\n";
}

std::string to_text(const Inspected& inspected, const std::string& path) {
  const ModelSummary& summary = inspected.imported.summary;
  std::string text =
      fmt::format("{}: opset {}, IR {}, {}\n", std::filesystem::path(path).filename().string(),
                  summary.opset, summary.ir_version, summary.producer);
  text += "inputs\n";
  for (const PortSummary& port : summary.inputs) text += port_text(port);
  text += "outputs\n";
  for (const PortSummary& port : summary.outputs) text += port_text(port);
  std::int64_t trained = 0, elements = 0;
  for (const ParameterSummary& p : summary.parameters) {
    trained += p.trainable;
    if (p.trainable) elements += p.type.elements();
  }
  text += fmt::format("parameters: {} trainable ({} elements), {} not\n", trained, elements,
                      summary.parameters.size() - trained);
  for (const ParameterSummary& p : summary.parameters) {
    text += fmt::format("  {} {:<40} {:<24} {}\n", p.trainable ? "train " : "frozen",
                        p.path == p.name ? p.name : p.path + " (" + p.name + ")",
                        tandem::to_string(p.type), p.reason);
  }
  text += "operators\n ";
  for (const auto& [op, count] : summary.operators) text += fmt::format(" {}×{}", op, count);
  text += "\n";
  if (!inspected.recognised.empty()) text += "recognised\n";
  for (const std::string& note : inspected.recognised) text += "  " + note + "\n";
  if (inspected.problems.empty()) {
    text += "ready to train\n";
  } else {
    text += fmt::format("{} problems block training\n", inspected.problems.size());
    for (const Problem& p : inspected.problems) {
      text += fmt::format("  {} {}: {}{}\n", p.path, p.op, p.reason,
                          p.fix.empty() ? "" : " (" + p.fix + ")");
    }
  }
  return text;
}

}  // namespace

InspectReport inspect(const std::string& model_path, const InspectOptions& options) {
  const Engine engine;
  const Inspected inspected = open_for_inspection(engine, model_path, options);
  InspectReport report;
  report.blocks_training = !inspected.problems.empty();
  Json json = to_json(inspected);
  if (options.stage.empty()) {
    report.text = to_text(inspected, model_path);
  } else {
    report.text = stage_text(engine, inspected, options.stage);
    json["stage"] = options.stage;
    json["text"] = report.text;
  }
  report.json = json.dump(2);
  return report;
}

}  // namespace tandem::api
