#include "engine/graph/parameter_names.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "engine/graph/text.h"
#include "engine/operators/operator.h"

namespace tandem {
namespace {

bool only_moves(const Node& node) {
  static const std::unordered_set<std::string_view> moves{"Cast", "Identity", "Reshape",
                                                          "Transpose"};
  return moves.contains(node.op->name);
}

bool lies_along_one_axis(const Shape& shape) {
  return !shape.empty() &&
         std::count_if(shape.begin(), shape.end(), [](std::int64_t n) { return n != 1; }) <= 1;
}

/// The ONNX operator of the path "encoder.lstm.LSTM#1": "LSTM".
std::string_view operator_in_path(std::string_view path) {
  std::string_view last = path.substr(path.rfind('.') + 1);
  return last.substr(0, last.find('#'));
}

/// The names that PyTorch has for an operator's inputs.
std::string role_of_input(const Node& node, std::size_t input, const Shape& shape) {
  const std::string_view op = node.op->name, in_file = operator_in_path(node.path);
  if (in_file == "LSTM" || in_file == "GRU" || in_file == "RNN")
    return shape.size() > 2 ? "weight" : "bias";
  if (op.starts_with("BatchNormalization")) {
    constexpr std::array names{"", "weight", "bias", "running_mean", "running_var"};
    return input < names.size() ? names[input] : "";
  }
  if (op == "Conv" || op == "LayerNormalization")
    return input == 1 ? "weight" : input == 2 ? "bias" : "";
  if (op == "MatMul" || op == "ConvGradInput") return "weight";
  if (op == "Unpack" || op == "PackedMatMul") {
    const std::size_t data = op == "Unpack" ? 0 : 1;
    return input == data ? "weight" : input == data + 1 ? "weight_scales" : "";
  }
  if (op == "PRelu") return input == 1 ? "weight" : "";
  if (node.op->role == Role::lookup || node.op->role == Role::embedding_bag)
    return input == 0 ? "weight" : "";
  if (op == "Add" || op == "Sub") return lies_along_one_axis(shape) ? "bias" : "";
  if (op == "Mul" || op == "Div") return lies_along_one_axis(shape) ? "weight" : "";
  return "";
}

/// Whether both are one module, or one lies inside of the other.
bool are_nested(const std::string& a, const std::string& b) {
  const std::string &outer = a.size() < b.size() ? a : b, &inner = a.size() < b.size() ? b : a;
  return inner.starts_with(outer) && (inner.size() == outer.size() || inner[outer.size()] == '.');
}

void add_once(std::vector<ParameterReader>& readers, ParameterReader reader) {
  if (std::find(readers.begin(), readers.end(), reader) == readers.end())
    readers.push_back(std::move(reader));
}

std::string reader_name(const ParameterReader& reader) {
  return reader.role.empty() ? reader.module : reader.module + ":" + reader.role;
}

/// "fc1" of "fc1:weight"; "" where the path is the raw name.
std::string own_scope(const State& state) {
  const std::size_t colon = state.path.rfind(':');
  if (state.path == state.source<CachedRows>() || colon == std::string::npos) return "";
  return state.path.substr(0, colon);
}

/// Has a `:` other than that of a group "(?:" in a regular expression.
bool names_role(const std::string& selector) {
  const bool is_regex = selector.starts_with("re:");
  for (std::size_t i = is_regex ? 3 : 0; i < selector.size(); ++i) {
    if (selector[i] == ':' && !(is_regex && selector[i - 1] == '?')) return true;
  }
  return false;
}

bool means(const Selector& selector, const ParameterReader& reader, bool has_scope) {
  if (names_role(selector.text())) {
    return !reader.role.empty() && (selector.matches(reader.module + ":" + reader.role) ||
                                    selector.matches(reader.op + ":" + reader.role));
  }
  // A weight with a scope of its own is not selected by one of the modules that share it.
  return !has_scope && (selector.matches(reader.module) || selector.matches(reader.op));
}

/// The end of a name: "q_proj:weight" of "layers.0.q_proj:weight"; "" where it has no role, and of
/// names that an exporter made up: "onnx::MatMul_12".
std::string end_of_name(const std::string& name) {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string::npos || colon == 0 || name[colon - 1] == ':') return "";
  const std::size_t dot = name.rfind('.', colon);
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

/// A selector for names that end nearly as the selector does: "**.q_proj:weight" for "q_proj",
/// "**.q_proj.weight" and "**.q_prj:weight"; "" where no names do.
std::string nearest_end(const std::string& selector, const std::vector<std::string>& names) {
  std::string wanted = selector;
  const std::size_t dot = wanted.rfind('.');
  if (!names_role(wanted)) {
    const bool has_role =
        dot != std::string::npos && (wanted.ends_with(".weight") || wanted.ends_with(".bias"));
    if (has_role)
      wanted[dot] = ':';
    else
      wanted += ":weight";
  }
  wanted = end_of_name(wanted);
  const auto module_of = [](const std::string& end) { return end.substr(0, end.find(':')); };
  std::vector<std::string> ends, modules;
  for (const std::string& name : names) {
    const std::string end = end_of_name(name);
    if (end.empty()) continue;
    ends.push_back(end);
    modules.push_back(module_of(end));
  }
  const auto has = [](const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  const std::string own = module_of(wanted),
                    module = has(modules, own) ? own : nearest_name(own, modules);
  if (module.empty()) return "";
  const std::string end = module + wanted.substr(own.size());  // in the role that is asked for
  return "**." + (has(ends, end)
                      ? end
                      : ends[static_cast<std::size_t>(
                            std::find(modules.begin(), modules.end(), module) - modules.begin())]);
}

/// The module of a product by a constant matrix, whose weight the selector would mean; "" where
/// there is none. So are products by the whole numbers of a quantized file.
std::string module_of_fixed_weight(const Selector& selector, const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if ((node.op->name != "MatMul" && node.op->name != "Conv") || node.inputs.size() < 2) continue;
    const ValueId weight = node.inputs[1];
    if (!graph.is_constant(weight) || graph.type(weight).rank() < 2) continue;
    const std::string module = module_of_path(node.path);
    if (selector.covers_parameter(module + ":weight", "")) return module;
  }
  return "";
}

}  // namespace

std::string module_of_path(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos || dot == 0 ? path : path.substr(0, dot);
}

ParameterNames::ParameterNames(const Graph& graph) {
  std::vector<const State*> holds(graph.values.size());  // by value: the state whose data it is
  std::unordered_set<std::string> taken;
  for (const State& state : graph.states) {
    if (state.kind != StateKind::parameter && state.kind != StateKind::buffer) continue;
    holds[static_cast<std::size_t>(state.initial.index)] = &state;
    taken.insert(state.path);
    taken.insert(state.name);
  }
  for (const Node& node : graph.nodes) {
    if (node.phase != Phase::forward) continue;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i]) continue;
      const State* state = holds[static_cast<std::size_t>(node.inputs[i].index)];
      if (state == nullptr) continue;
      if (only_moves(node) || (node.op->name == "Unpack" && i == 0)) {
        holds[static_cast<std::size_t>(node.outputs[0].index)] = state;
        continue;
      }
      std::string role = role_of_input(node, i, state->start.shape());
      // Adapters: "onnx::MatMul_12/lora_a".
      const std::size_t part = state->name.rfind("/lora_");
      if (part != std::string::npos) role += state->name.substr(part);
      add_once(readers_[state->name], {module_of_path(node.path), node.path, std::move(role)});
    }
  }
  for (const State& state : graph.states) {
    const auto found = readers_.find(state.name);
    if (found == readers_.end() || state.kind != StateKind::parameter) continue;
    const std::string scope = own_scope(state);
    std::vector<ParameterReader>& names = further_[state.name];
    for (ParameterReader reader : found->second) {
      if (!scope.empty()) {
        if (are_nested(scope, reader.module)) continue;
        reader.role = state.path.substr(scope.size() + 1);
      }
      if (!taken.contains(reader_name(reader))) add_once(names, std::move(reader));
    }
  }
}

const std::vector<ParameterReader>& ParameterNames::readers(const State& state) const {
  static const std::vector<ParameterReader> none;
  const auto found = readers_.find(state.name);
  return found == readers_.end() ? none : found->second;
}

const std::vector<ParameterReader>& ParameterNames::further(const State& state) const {
  static const std::vector<ParameterReader> none;
  auto found = further_.find(state.name);
  if (found == further_.end()) found = further_.find(state.source<CachedRows>());
  return found == further_.end() ? none : found->second;
}

std::vector<std::string> ParameterNames::further_names(const State& state) const {
  std::vector<std::string> names;
  for (const ParameterReader& reader : further(state)) {
    std::string name = reader_name(reader);
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  return names;
}

bool ParameterNames::covers(const Selector& selector, const State& state) const {
  return selector.covers_parameter(state.path, state.source<CachedRows>()) ||
         !matched_reader(selector, state).empty();
}

std::string ParameterNames::matched_reader(const Selector& selector, const State& state) const {
  if (selector.covers_parameter(state.path, state.source<CachedRows>())) return "";
  const bool has_scope = !own_scope(state).empty();
  for (const ParameterReader& reader : further(state)) {
    if (means(selector, reader, has_scope)) return reader_name(reader);
  }
  return "";
}

std::string ParameterNames::no_match_fix(const std::string& selector, const Graph& graph) const {
  const Selector parsed(selector);
  std::vector<std::string> names;
  for (const State& state : graph.states) {
    if (state.kind != StateKind::parameter) continue;
    for (const ParameterReader& reader : further(state)) {
      const bool is_read_there = parsed.matches(reader.module) || parsed.matches(reader.op);
      if (is_read_there && !reader.role.empty())
        return "other modules read \"" + state.path + "\" as well: name it \"" +
               reader_name(reader) + "\" or \"" + state.path + "\"";
    }
    names.push_back(state.path);
    names.push_back(state.name);
    for (std::string& name : further_names(state)) names.push_back(std::move(name));
  }
  if (const std::string module = module_of_fixed_weight(parsed, graph); !module.empty())
    return "the weight of \"" + module +
           "\" is a constant, as in a quantized file: take the float model that it was made of, "
           "and quantize the result";
  std::string nearest = nearest_name(selector, names);
  if (nearest.empty()) nearest = nearest_end(selector, names);
  return did_you_mean(nearest, "`tandem inspect MODEL --parameters` lists them");
}

}  // namespace tandem
