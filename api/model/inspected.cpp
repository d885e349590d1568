#include "api/model/inspected.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "engine/graph/parameter_names.h"
#include "engine/graph/text.h"
#include "placement/report/json.h"

namespace tandem::api {
namespace {

constexpr const char* missing = "unsupported_operator";

Json port_json(const PortSummary& port) {
  Json json{{"name", port.name}, {"dtype", port.dtype}, {"dims", port.dims}};
  if (port.has_bound) json["bound"] = port.bound;
  return json;
}

std::string port_text(const PortSummary& port) {
  std::string text = fmt::format("  {}: {}[{}]", port.name, port.dtype, joined(port.dims));
  if (port.has_bound) text += " = " + to_string(port.bound);
  return text + "\n";
}

std::string with_fix(const std::string& reason, const std::string& fix) {
  return fix.empty() ? reason : reason + " (" + fix + ")";
}

/// Adds the paths of operators that read a parameter, and the further names that these give it.
void add_readers(const ParameterNames& names, const Graph& graph, ModelParameter& parameter) {
  const State* state = graph.find_state(parameter.name);
  if (state == nullptr) return;
  parameter.further_names = names.further_names(*state);
  for (const ParameterReader& reader : names.readers(*state)) {
    std::vector<std::string>& ops = parameter.read_by;
    if (std::find(ops.begin(), ops.end(), reader.op) == ops.end()) ops.push_back(reader.op);
  }
}

const Graph& graph_of_readers(const Inspected& inspected) {
  return inspected.named.states.empty() ? inspected.imported.graph : inspected.named;
}

/// "; read by q_proj.MatMul: also called q_proj:weight"; long lists are cut.
std::string readers_text(const ModelParameter& parameter) {
  const auto listed = [](const std::vector<std::string>& names) {
    constexpr std::size_t shown = 4;
    const std::vector<std::string> first(
        names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(shown, names.size())));
    const std::size_t more = names.size() - first.size();
    return joined(first) + (more > 0 ? fmt::format(" and {} more", more) : "");
  };
  if (parameter.read_by.empty()) return "";
  std::string text = "; read by " + listed(parameter.read_by);
  if (!parameter.further_names.empty()) text += ": also called " + listed(parameter.further_names);
  return text;
}

std::string parameters_text(const Inspected& inspected, bool all) {
  const std::vector<ModelParameter> parameters = parameters_of(inspected);
  std::int64_t trained = 0, elements = 0, statistics = 0;
  for (const ModelParameter& p : parameters) {
    trained += p.trains;
    statistics += p.is_buffer;
    if (p.trains) elements += p.elements;
  }
  const auto others = static_cast<std::int64_t>(parameters.size()) - trained - statistics;
  std::string text = fmt::format("parameters: {} trainable ({} elements)", trained, elements);
  if (statistics > 0) text += fmt::format(", {} running statistics", statistics);
  if (others > 0) text += fmt::format(", {} that do not train", others);
  if (!all) return text + (parameters.empty() ? "\n" : "; --parameters lists them\n");
  text += "\n";
  for (const ModelParameter& p : parameters) {
    text +=
        fmt::format("  {} {:<40} {:<24} {}\n",
                    p.trains      ? "train "
                    : p.is_buffer ? "kept  "
                                  : "frozen",
                    p.path == p.name ? p.name : p.path + " (" + p.name + ")",
                    tandem::to_string(TensorType{p.dtype, p.shape}), p.reason + readers_text(p));
  }
  return text;
}

std::string missing_table(const std::vector<Problem>& problems) {
  std::size_t op = 8, path = 8;
  for (const Problem& p : problems) {
    if (p.kind != missing) continue;
    op = std::max(op, p.op.size());
    path = std::max(path, p.path.size());
  }
  std::string text = fmt::format("  {:<{}}  nodes  {:<{}}  why (what would help)\n", "operator", op,
                                 "first at", path);
  for (const Problem& p : problems) {
    if (p.kind != missing) continue;
    text += fmt::format("  {:<{}}  {:>5}  {:<{}}  {}\n", p.op, op, p.count, p.path, path,
                        with_fix(p.reason, p.fix));
  }
  return text;
}

}  // namespace

std::vector<ModelParameter> parameters_of(const Inspected& inspected) {
  const Graph& graph = graph_of_readers(inspected);
  const ParameterNames names(graph);
  std::vector<ModelParameter> parameters;
  for (const ParameterSummary& summary : inspected.imported.summary.parameters) {
    ModelParameter& parameter = parameters.emplace_back();
    parameter.name = summary.name;
    parameter.path = summary.path;
    parameter.dtype = summary.type.dtype;
    parameter.shape = summary.type.shape;
    parameter.elements = summary.type.elements();
    parameter.trains = summary.trainable;
    parameter.is_buffer = summary.kind == StateKind::buffer;
    parameter.reason = summary.reason;
    add_readers(names, graph, parameter);
  }
  return parameters;
}

bool lacks_lengths_alone(const Inspected& inspected) {
  const std::vector<Problem>& problems = inspected.problems;
  return !problems.empty() && std::all_of(problems.begin(), problems.end(), [](const Problem& p) {
    return p.kind == "free_dimension";
  });
}

Json to_json(const Inspected& inspected) {
  const ModelSummary& summary = inspected.imported.summary;
  Json json{
      {"producer", summary.producer}, {"ir_version", summary.ir_version}, {"opset", summary.opset}};
  json["inputs"] = json["outputs"] = json["parameters"] = json["problems"] = Json::array();
  json["missing_operators"] = json["export_notes"] = Json::array();
  for (const PortSummary& port : summary.inputs) json["inputs"].push_back(port_json(port));
  for (const PortSummary& port : summary.outputs) json["outputs"].push_back(port_json(port));
  for (const ModelParameter& p : parameters_of(inspected)) {
    json["parameters"].push_back({{"name", p.name},
                                  {"path", p.path},
                                  {"shape", p.shape},
                                  {"dtype", name_of(p.dtype)},
                                  {"trainable", p.trains},
                                  {"running_statistics", p.is_buffer},
                                  {"reason", p.reason},
                                  {"read_by", p.read_by},
                                  {"further_names", p.further_names}});
  }
  json["operators"] = summary.operators;
  json["nodes"] = summary.nodes;
  json["for_policy"] = counts_json(inspected.counts);
  if (inspected.has_training_info)
    json["training_info"] = inspected.algorithm ? Json(inspected.algorithm->summary()) : Json();
  json["recognised"] = inspected.recognised;
  if (!summary.notes.empty()) json["notes"] = summary.notes;
  for (const Problem& p : inspected.problems) {
    json["problems"].push_back({{"kind", p.kind},
                                {"operator", p.op},
                                {"path", p.path},
                                {"reason", p.reason},
                                {"fix", p.fix}});
    if (p.kind != missing) continue;
    json["missing_operators"].push_back({{"operator", p.op},
                                         {"count", p.count},
                                         {"path", p.path},
                                         {"reason", p.reason},
                                         {"help", p.fix}});
  }
  for (const ExportNote& note : inspected.export_notes) {
    Json entry{{"kind", note.kind}, {"text", note.text}, {"fix", note.fix}};
    if (!note.parameter.empty()) entry["parameter"] = note.parameter;
    if (note.row >= 0) entry["row"] = note.row;
    json["export_notes"].push_back(std::move(entry));
  }
  json["notices"] = notices_json(inspected.notices);
  return json;
}

Json notices_json(const std::vector<ModelNotice>& notices) {
  Json list = Json::array();
  for (const ModelNotice& notice : notices) {
    Json entry{{"kind", notice.kind},
               {"warning", notice.is_warning},
               {"text", notice.text},
               {"fix", notice.fix},
               {"names", notice.names}};
    if (notice.kind == "quantized") {
      entry["trained"] = notice.trained;
      entry["all"] = notice.all;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

std::string problems_text(const Inspected& inspected) {
  const std::string distance = missing_operators(inspected.imported.summary);
  const auto others = std::count_if(inspected.problems.begin(), inspected.problems.end(),
                                    [](const Problem& p) { return p.kind != missing; });
  std::string text = "not ready to train: " + distance;
  if (others > 0) {
    text += fmt::format("{}{} {}problem{}", distance.empty() ? "" : ", and ", others,
                        distance.empty() ? "" : "more ", others == 1 ? "" : "s");
  }
  text += "\n";
  if (!distance.empty()) text += missing_table(inspected.problems);
  for (const Problem& p : inspected.problems) {
    if (p.kind == missing) continue;
    const std::string where = p.op.empty() ? p.path : p.path + " " + p.op;
    text += fmt::format("  {}{}{}\n", where, where.empty() ? "" : ": ", with_fix(p.reason, p.fix));
  }
  if (lacks_lengths_alone(inspected))
    text += "  `tandem init MODEL --data DATA` binds them as long as the samples are\n";
  return text;
}

std::string to_text(const Inspected& inspected, const std::string& path, bool parameters) {
  const ModelSummary& summary = inspected.imported.summary;
  std::string text =
      fmt::format("{}: opset {}, IR {}, {}\n", std::filesystem::path(path).filename().string(),
                  summary.opset, summary.ir_version, summary.producer);
  if (!inspected.problems.empty()) text += problems_text(inspected);
  bool any_warning = false, any_note = !summary.notes.empty();
  for (const ModelNotice& notice : inspected.notices) {
    (notice.is_warning ? any_warning : any_note) = true;
    if (notice.is_warning) text += "warning: " + in_one_line(notice) + "\n";
  }
  if (!inspected.export_notes.empty()) text += "what the export has lost\n";
  for (const ExportNote& note : inspected.export_notes)
    text += "  " + note.text + "\n    fixed by " + note.fix + "\n";
  if (inspected.has_training_info) {
    text += "training_info: " +
            (inspected.algorithm ? inspected.algorithm->summary()
                                 : std::string("of a model with problems")) +
            "\n";
  }
  text += "inputs\n";
  for (const PortSummary& port : summary.inputs) text += port_text(port);
  text += "outputs\n";
  for (const PortSummary& port : summary.outputs) text += port_text(port);
  text += parameters_text(inspected, parameters);
  text += "operators\n ";
  for (const auto& [op, count] : summary.operators) text += fmt::format(" {}×{}", op, count);
  text += "\n";
  if (summary.problems.empty()) {
    text += fmt::format("for a policy: {} (`tandem policy names` lists them)\n",
                        counts_text(inspected.counts));
  }
  if (!inspected.recognised.empty()) text += "recognised\n";
  for (const std::string& note : inspected.recognised) text += "  " + note + "\n";
  if (any_note) text += "notes\n";
  for (const ModelNotice& notice : inspected.notices) {
    if (!notice.is_warning) text += "  " + in_one_line(notice) + "\n";
  }
  for (const std::string& note : summary.notes) text += "  " + note + "\n";
  if (!inspected.problems.empty()) return text;
  text += "ready to train";
  if (!inspected.export_notes.empty()) text += ", but for what the export has lost (above)";
  if (any_warning)
    text +=
        inspected.export_notes.empty() ? ", but see the warning above" : "; see the warning, too";
  return text + "\n";
}

}  // namespace tandem::api
