#include "engine/passes/packed_states.h"

#include <algorithm>
#include <set>

#include "engine/graph/rewrite.h"

namespace tandem {
namespace {

/// Lets all that reads `old` read `replacement`.
void redirect(Graph& graph, ValueId old, ValueId replacement) {
  for (Node& node : graph.nodes)
    std::replace(node.inputs.begin(), node.inputs.end(), old, replacement);
  for (NamedValue& output : graph.outputs) {
    if (output.value == old) output.value = replacement;
  }
}

/// Lets all that reads the parameter through an Unpack read it itself, as float32.
void remove_unpack(Graph& graph, const State& state) {
  graph.value(state.initial).type.dtype = DType::float32;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op->name == "Unpack" && node.inputs[0] == state.initial)
      redirect(graph, node.outputs[0], state.initial);
  }
}

State scales_of(const State& state, const PackedTensor& packed) {
  State scales;
  scales.name = scales_name(state.name);
  scales.path = state.path + "_scales";
  scales.reason = "scales of a packed weight";
  scales.start = packed.scales;
  scales.held_by = HeldBy::model;
  return scales;
}

/// A parameter in the new graph, and the Unpack that all its readers get.
struct Unpacking {
  std::vector<ValueId> inputs;
  Attributes attributes;
};

Unpacking unpacking_of(GraphRewrite& to, const State& state, const PackedTensor& packed) {
  const PackedFormat& format = packed_format(packed.kind);
  Unpacking result{{to.mapped(state.initial)},
                   {{"kind", std::string(format.name)},
                    {"columns", packed.from.shape.back()},
                    {"column_block", packed.block}}};
  if (format.has_codes()) result.inputs.push_back(to.builder().state(scales_of(state, packed)));
  return result;
}

}  // namespace

bool is_kept_in_16_bits(const Graph& graph, const State& state) {
  if (state.kind != StateKind::parameter || !packed_kind_of(state.start.dtype())) return false;
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    const bool reads =
        std::find(node.inputs.begin(), node.inputs.end(), state.initial) != node.inputs.end();
    return !reads || node.op->name == "Unpack";
  });
}

Graph widened_states(Graph graph, const OperatorSet& operators,
                     const std::vector<std::string>& names) {
  if (names.empty()) return graph;
  const std::set<std::string> wanted(names.begin(), names.end());
  for (State& state : graph.states) {
    if (!wanted.contains(state.name)) continue;
    state.start = state.start.converted(DType::float32);
    remove_unpack(graph, state);
  }
  return remove_dead(graph, operators);
}

Graph packed_states(const Graph& graph, const OperatorSet& operators,
                    const std::map<std::string, PackedTensor>& states,
                    const std::vector<std::string>& narrow) {
  if (states.empty() && narrow.empty()) return graph;
  Graph from = graph;
  std::map<std::string, PackedTensor> all = states;
  for (State& state : from.states) {
    const auto found = states.find(state.name);
    const bool is_narrow = std::find(narrow.begin(), narrow.end(), state.name) != narrow.end();
    if (found == states.end() && !is_narrow) continue;
    remove_unpack(from, state);
    if (is_narrow) {
      all[state.name] = {.kind = *packed_kind_of(state.start.dtype()),
                         .from = state.start.type(),
                         .data = state.start};
      continue;
    }
    state.trainable = false;
    state.reason = "parameters.storage packs it: no step changes it";
    state.held_by = HeldBy::model;
    state.start = found->second.data;
  }
  GraphRewrite to(from, operators);
  std::map<std::int32_t, Unpacking> unpackings;  // by the parameter's value
  for (const State& state : from.states) {
    const auto found = all.find(state.name);
    if (found != all.end())
      unpackings.emplace(state.initial.index, unpacking_of(to, state, found->second));
  }
  const auto unpack = [&](ValueId parameter) {
    const auto found = unpackings.find(parameter.index);
    if (found == unpackings.end()) return;
    const Unpacking& with = found->second;
    to.replace(parameter, to.builder().add_node("Unpack", with.inputs, with.attributes));
  };
  // Each reader has an Unpack of its own, with its path: policies place both by it.
  for (std::size_t i = 0; i < from.nodes.size(); ++i) {
    const NodeId id{static_cast<std::int32_t>(i)};
    if (!to.is_live(id)) continue;
    to.scope_of(id);
    for (const ValueId input : from.node(id).inputs) unpack(input);
    to.copy(id);
  }
  to.builder().set_scope({});
  for (const NamedValue& output : from.outputs) unpack(output.value);
  return to.finish();
}

std::string scales_name(const std::string& parameter) { return parameter + "/scales"; }

std::set<std::string> scales_names(const std::map<std::string, PackedTensor>& states) {
  std::set<std::string> names;
  for (const auto& [name, packed] : states) names.insert(scales_name(name));
  return names;
}

}  // namespace tandem
