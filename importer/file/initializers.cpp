#include "importer/file/initializers.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/runtime/file_pages.h"
#include "importer/buffers/buffer_signs.h"
#include "importer/file/added_biases.h"
#include "importer/file/moves.h"
#include "importer/operators/all.h"
#include "importer/paths.h"
#include "importer/weights/constant_weights.h"
#include "importer/weights/weight_places.h"

namespace tandem::importer {
namespace {

void collect_captures(const onnx::GraphProto& graph, std::vector<std::string>& names) {
  for (const onnx::NodeProto& node : graph.node()) {
    for (std::string& name : reads_of(node)) names.push_back(std::move(name));
  }
  for (const onnx::ValueInfoProto& output : graph.output()) names.push_back(output.name());
}

// What the file's metadata says about an initializer: "PARAMETER", "BUFFER", "CONSTANT_TENSOR".
struct Kinds {
  std::unordered_map<std::string, std::string> kind;
  std::unordered_set<std::string> transient;  // buffers that the state_dict leaves out

  explicit Kinds(const onnx::GraphProto& graph) {
    const auto read = [&](const onnx::ValueInfoProto& info) {
      for (const onnx::StringStringEntryProto& entry : info.metadata_props()) {
        if (entry.key() == "pkg.torch.export.graph_signature.InputSpec.kind") {
          kind[info.name()] = entry.value();
        } else if (entry.key() == "pkg.torch.export.graph_signature.InputSpec.persistent" &&
                   entry.value() == "False") {
          transient.insert(info.name());
        }
      }
    };
    for (const onnx::ValueInfoProto& info : graph.value_info()) read(info);
    for (const onnx::ValueInfoProto& info : graph.input()) read(info);
  }
};

// How the needed nodes use an initializer.
struct Uses {
  std::string setting_of;  // operators that need it before the run
  std::string statistics_of;
  std::string weight_of;  // a place where only weights are
  std::string bias_of;    // added to a product, one element a column or channel
  std::string other;      // anything else
};

bool is_statistic(const std::string& op, std::size_t input) {
  const Lowering* lowering = find_lowering(op);
  return lowering != nullptr && lowering->statistics.has(input);
}

std::unordered_map<std::string, Uses> all_uses(const OnnxFile::Content& file,
                                               const std::vector<bool>& needed) {
  std::unordered_map<std::string, Uses> uses;
  const onnx::GraphProto& graph = file.model->graph();
  const ModulePaths modules(*file.model);
  const WeightPlaces places(graph, needed, modules);
  const std::unordered_set<std::string> biases = added_biases(file, needed);
  const auto moved_to = [&](const onnx::NodeProto& node, int input, std::size_t rank) {
    const bool moves = input == 0 && is_move(node) && node.output_size() > 0;
    return moves ? places.find(node.output(0), rank) : std::string();
  };
  const auto add = [&](const onnx::NodeProto& node, const auto& self) -> void {
    std::string path = modules.operator_path(node);
    if (path.empty()) path = node.op_type();
    const std::string op = lowering_name(node);
    for (int i = 0; i < node.input_size(); ++i) {
      const auto value = file.initializers.find(node.input(i));
      if (value == file.initializers.end()) continue;
      Uses& use = uses[node.input(i)];
      const auto at = static_cast<std::size_t>(i);
      if (is_setting(op, at)) {
        use.setting_of = path;
      } else if (is_statistic(op, at)) {
        use.statistics_of = path;
      } else if (is_weight(op, at, value->second.shape().size())) {
        use.weight_of = path;
      } else if (const std::string of = moved_to(node, i, value->second.shape().size());
                 !of.empty()) {
        use.weight_of = of;
      } else if (op == "Add" && biases.count(node.input(i)) > 0) {
        use.bias_of = path;
      } else if (node.op_type() != "Shape" && node.op_type() != "Size" &&
                 node.op_type() != "CastLike") {
        use.other = path;
      }
    }
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      for (const onnx::NodeProto& inner : attribute.g().node()) self(inner, self);
    }
    for (const std::string& name : reads_of(node)) {
      if (file.initializers.count(name) > 0) uses[name];  // also what graphs inside it return
    }
  };
  for (int n = 0; n < graph.node_size(); ++n) {
    if (needed[static_cast<std::size_t>(n)]) add(graph.node(n), add);
  }
  return uses;
}

Role state(StateKind kind, bool trainable, std::string reason) {
  return {true, kind, trainable, std::move(reason)};
}
Role constant(std::string reason) {
  return {false, StateKind::parameter, false, std::move(reason)};
}

/// Files in which numbers are the names of all weights, which are inputs of the graph too: old
/// exporters numbered whatever a graph has, and computed no constants.
bool numbers_are_names(const OnnxFile::Content& file) {
  std::unordered_set<std::string> inputs;
  for (const onnx::ValueInfoProto& input : file.model->graph().input()) inputs.insert(input.name());
  return std::all_of(file.initializers.begin(), file.initializers.end(), [&](const auto& entry) {
    const auto& [name, value] = entry;
    return !is_float(value.dtype()) || (is_number(name) && inputs.count(name) > 0);
  });
}

/// Numbers of formulas. skl2onnx writes lone ones, and what it calls "Mu_Mulcst", "Ad_Addcst1".
/// tf2onnx writes lone ones by the name of what they were in TensorFlow ("sub/x:0",
/// "zeros/Const:0") or a number ("const_fold_opt__66"); a variable's name says that it was read.
bool is_of_a_formula(const OnnxFile::Content& file, const std::string& name,
                     const HostTensor& value) {
  const std::string& producer = file.model->producer_name();
  if (producer == "tf2onnx")
    return value.type().elements() == 1 && name.find("ReadVariableOp") == std::string::npos;
  if (producer != "skl2onnx") return false;
  const std::size_t last = name.find_last_not_of("0123456789");
  const bool is_named_so =
      last != std::string::npos && last >= 2 && name.substr(last - 2, 3) == "cst";
  return is_named_so || value.shape().empty();
}

/// For an initializer that may be a buffer as far as the file says: its name or its values may show
/// it.
Role parameter_or_buffer(const std::string& name, const HostTensor& value, const Uses& use,
                         const BufferSigns& signs, bool file_says, std::string reason) {
  Role role = state(StateKind::parameter, true, std::move(reason));
  const bool is_weight = !use.weight_of.empty() || !use.bias_of.empty();
  const auto sign = signs.find(name, value, is_weight);
  if (!sign) return role;
  if (!sign->is_sure || file_says) {
    role.doubt = sign->reason;
    return role;
  }
  role.trainable = false;
  role.reason = "recognised as a buffer: " + sign->reason;
  role.is_recognised_buffer = true;
  return role;
}

Role role_of(const std::string& name, const HostTensor& value, const Uses& use, const Kinds& kinds,
             const BufferSigns& signs, bool is_made_up, const std::string& output) {
  if (is_float8(value.dtype())) {
    return constant(fmt::format(
        "{} is not trained: keep the weight in float32 and quantize it in the graph to train it",
        name_of(value.dtype())));
  }
  if (!is_float(value.dtype()))
    return constant(fmt::format("{} is not trained", name_of(value.dtype())));
  if (!use.setting_of.empty()) return constant(fmt::format("a setting of {}", use.setting_of));
  if (!use.statistics_of.empty()) {
    return state(StateKind::buffer, false,
                 fmt::format("running statistics of {}", use.statistics_of));
  }
  const auto kind = kinds.kind.find(name);
  if (kind != kinds.kind.end()) {
    if (kind->second == "BUFFER" && kinds.transient.count(name) > 0) {
      return constant("the file calls it a buffer that is not saved");
    }
    if (kind->second == "BUFFER")
      return state(StateKind::buffer, false, "the file calls it a buffer");
    if (kind->second == "CONSTANT_TENSOR") return constant("the file calls it a constant");
    if (kind->second == "PARAMETER") {
      return parameter_or_buffer(
          name, value, use, signs, true,
          fmt::format("the file calls it a parameter, and it reaches '{}'", output));
    }
  }
  // Names that the exporter made up belong to weights that it moved, or to constants that it
  // computed.
  const bool is_bias = is_made_up && kinds.kind.empty() && !use.bias_of.empty();
  if ((is_made_up || !kinds.kind.empty()) && use.weight_of.empty() && !is_bias) {
    return constant(is_made_up ? "computed by the exporter, and not in the place of a weight"
                               : "the file lists its parameters, and this is none of them");
  }
  return parameter_or_buffer(
      name, value, use, signs, false,
      fmt::format("a {} initializer that reaches '{}'", name_of(value.dtype()), output));
}

}  // namespace

std::vector<std::string> reads_of(const onnx::NodeProto& node) {
  std::vector<std::string> names;
  for (const std::string& input : node.input()) {
    if (!input.empty()) names.push_back(input);
  }
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) collect_captures(attribute.g(), names);
    for (const onnx::GraphProto& graph : attribute.graphs()) collect_captures(graph, names);
  }
  return names;
}

std::vector<bool> needed_nodes(const onnx::GraphProto& graph,
                               const std::vector<std::string>& outputs) {
  std::unordered_set<std::string> wanted(outputs.begin(), outputs.end());
  std::vector<bool> needed(static_cast<std::size_t>(graph.node_size()), false);
  for (int n = graph.node_size(); n-- > 0;) {
    const onnx::NodeProto& node = graph.node(n);
    const bool is_needed =
        std::any_of(node.output().begin(), node.output().end(),
                    [&](const std::string& name) { return wanted.count(name) > 0; });
    if (!is_needed) continue;
    needed[static_cast<std::size_t>(n)] = true;
    for (std::string& name : reads_of(node)) wanted.insert(std::move(name));
  }
  return needed;
}

bool is_text(const onnx::ValueInfoProto& output) {
  return output.type().tensor_type().elem_type() == onnx::TensorProto::STRING;
}

std::unordered_map<std::string, Role> initializer_roles(const OnnxFile::Content& file,
                                                        const std::vector<bool>& needed) {
  const onnx::GraphProto& graph = file.model->graph();
  const Kinds kinds(graph);
  const auto uses = all_uses(file, needed);
  const BufferSigns signs(file, needed);
  const std::string output = graph.output_size() > 0 ? graph.output(0).name() : "";
  const bool numbered = numbers_are_names(file);
  std::unordered_map<std::string, Role> roles;
  for (const auto& [name, value] : file.initializers) {
    const auto use = uses.find(name);
    const bool direct = std::any_of(graph.output().begin(), graph.output().end(),
                                    [&name = name](const auto& o) { return o.name() == name; });
    const bool is_packed = file.packed.data.contains(name);
    if (use == uses.end() && !direct) {
      roles[name] = constant("reaches no output");
    } else if (is_packed || file.packed.scales.contains(name)) {
      roles[name] = state(StateKind::parameter, false,
                          is_packed ? "packed: no step changes it" : "scales of a packed weight");
      roles[name].is_packed = true;
    } else {
      const bool is_made_up =
          (!numbered && is_generated_name(name)) || is_of_a_formula(file, name, value);
      const Uses& how = use == uses.end() ? Uses{} : use->second;
      Role role = role_of(name, value, how, kinds, signs, is_made_up, output);
      if (role.trainable && is_constant_weight(file.attribute_weights, name)) {
        const bool is_sure = role.doubt.empty();
        role = constant(constant_weight_reason);
        role.is_recognised_buffer = is_sure;
      }
      roles[name] = std::move(role);
      // Its values were looked at, and files may be larger than the memory.
      drop_large_value(value.data(), value.bytes());
    }
  }
  return roles;
}

}  // namespace tandem::importer
