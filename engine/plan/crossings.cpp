#include "engine/plan/crossings.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "engine/operators/tables/table_nodes.h"

namespace tandem {
namespace {

std::string source_name(const Graph& graph, ValueId value) {
  if (const NodeId producer = graph.value(value).producer) return graph.node(producer).path;
  for (const State& state : graph.states) {
    if (state.initial == value) return state.path.empty() ? state.name : state.path;
  }
  return graph.value(value).name;
}

/// The table whose rows, or gradients of rows, the transfer copies; its third input counts them.
std::string table_of_rows(const Graph& graph, const Node& transfer) {
  const ValueId count = transfer.inputs[2];
  const Node* of_same_ids = nullptr;
  const auto counts = [&](const Node& gather) {
    if (gather.inputs[2] == count) return true;
    const NodeId plan = graph.value(gather.inputs[1]).producer;  // plans which rows are late
    return plan && graph.node(plan).op->role == Role::row_plan &&
           graph.node(plan).inputs[1] == count;
  };
  for (const Node& node : graph.nodes) {
    if (node.op->role != Role::packed_rows || !counts(node)) continue;
    if (!of_same_ids || node.outputs[0] == transfer.inputs[0]) of_same_ids = &node;
  }
  if (!of_same_ids) return "";
  for (const State& state : graph.states) {
    if (!(state.initial == of_same_ids->inputs[0])) continue;
    return state.source<Mirror>();
  }
  return "";
}

std::vector<std::string> consumer_names(const Graph& graph, ValueId value,
                                        const std::vector<NodeId>& readers) {
  std::vector<std::string> names;
  for (const NodeId reader : readers) {
    const std::string& path = graph.node(reader).path;
    if (std::find(names.begin(), names.end(), path) == names.end()) names.push_back(path);
  }
  for (const NamedValue& output : graph.outputs) {
    if (output.value == value) names.push_back("output " + output.name);
  }
  for (const State& state : graph.states) {
    if (state.final == value && !(state.initial == value)) {
      names.push_back(state.path.empty() ? state.name : state.path);
    }
  }
  return names;
}

// Groups views that are connected on one device.
class ViewGroups {
 public:
  explicit ViewGroups(const Lowered& lowered) : parent_(lowered.graph.nodes.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    const Graph& graph = lowered.graph;
    for (std::size_t n = 0; n < parent_.size(); ++n) {
      if (!lowered.nodes[n].is_view()) continue;
      for (const ValueId input : graph.nodes[n].inputs) {
        const NodeId from = input ? graph.value(input).producer : NodeId{};
        if (from && lowered.nodes[from.index].is_view()) parent_[root(n)] = root(from.index);
      }
    }
  }
  std::size_t root(std::size_t n) const {
    while (parent_[n] != n) n = parent_[n];
    return n;
  }

 private:
  std::vector<std::size_t> parent_;
};

}  // namespace

std::vector<Crossing> crossings_of(const Lowered& lowered, const Plan& plan,
                                   const Simulation* simulation, const Graph* imported) {
  const Graph& graph = lowered.graph;
  const auto readers = readers_of(graph);
  std::map<std::pair<int, int>, double> exposed;  // by queue and index
  if (simulation) {
    for (const SimulatedSpan& span : simulation->spans) {
      exposed[{span.queue, span.index}] = std::min(span.exposed, span.end - span.start);
    }
  }
  std::vector<Crossing> crossings;
  std::map<std::int32_t, std::size_t> of_node;  // a copy in ranges is one crossing
  for (const Launch& launch : plan.launches) {
    const Instruction& instruction = plan.queues[launch.queue].instructions[launch.index];
    if (instruction.kind != Instruction::Kind::copy) continue;
    const Node& node = graph.node(instruction.node);
    const auto [known, is_new] = of_node.try_emplace(instruction.node.index, crossings.size());
    if (is_new) crossings.emplace_back();
    Crossing& crossing = crossings[known->second];
    for (const Access& access : instruction.accesses) {
      if (access.write) crossing.bytes += access.end - access.begin;
    }
    const auto waited = exposed.find({launch.queue, launch.index});
    if (waited != exposed.end()) crossing.exposed += waited->second;
    if (!is_new) continue;
    crossing.node = instruction.node;
    crossing.from = lowered.values[node.inputs[0].index].device;
    crossing.to = lowered.nodes[instruction.node.index].device;
    crossing.value = graph.value(node.inputs[0]).name;
    crossing.producer = source_name(graph, node.inputs[0]);
    if (const ValueId same = imported ? imported->find_value(crossing.value) : ValueId{}) {
      crossing.producer = source_name(*imported, same);
    }
    crossing.phase = node.phase;
    if (node.inputs.size() > 2 && node.inputs[2]) {
      crossing.rows = true;
      crossing.table = table_of_rows(graph, node);
      crossing.ahead =
          std::any_of(graph.states.begin(), graph.states.end(), [&](const State& state) {
            return state.derived.is<PrefetchedRows>() && state.final == node.outputs[0];
          });
    }
    crossing.consumers = consumer_names(graph, node.outputs[0], readers[node.outputs[0].index]);
  }
  return crossings;
}

Traffic traffic_of(const std::vector<Crossing>& crossings) {
  Traffic traffic;
  for (const Crossing& crossing : crossings) {
    const auto times = static_cast<std::size_t>(crossing.counted_times());
    (crossing.scalar() ? traffic.scalar_copies : traffic.copies) += crossing.times;
    (crossing.scalar() ? traffic.scalar_bytes : traffic.bytes) += crossing.bytes * times;
    if (crossing.scalar()) continue;
    traffic.rows = traffic.rows || crossing.rows;
    traffic.counted = traffic.counted || crossing.expected_bytes;
    traffic.expected_bytes += crossing.expected_bytes.value_or(crossing.bytes) * times;
  }
  return traffic;
}

std::vector<IdleView> idle_views(const Lowered& lowered, const std::vector<Crossing>& crossings) {
  const Graph& graph = lowered.graph;
  const auto readers = readers_of(graph);
  std::map<std::int32_t, const Crossing*> crossing_of;
  for (const Crossing& crossing : crossings) crossing_of[crossing.node.index] = &crossing;
  const ViewGroups groups(lowered);
  std::map<std::size_t, std::vector<std::size_t>> members;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (lowered.nodes[n].is_view()) members[groups.root(n)].push_back(n);
  }

  std::vector<IdleView> found;
  for (const auto& [root, nodes] : members) {
    IdleView view{graph.nodes[nodes.front()].path, lowered.nodes[nodes.front()].device, -1, 0};
    bool idle = true;
    const auto passes = [&](const Crossing& crossing, int other) {
      if (view.neighbours >= 0 && view.neighbours != other) idle = false;
      view.neighbours = other;
      view.bytes += crossing.bytes * static_cast<std::size_t>(crossing.times);
    };
    for (const std::size_t n : nodes) {
      for (const ValueId input : graph.nodes[n].inputs) {
        if (!input || graph.is_constant(input)) continue;
        const NodeId from = graph.value(input).producer;
        if (from && lowered.nodes[from.index].is_view()) continue;  // in the same group
        const auto copy = crossing_of.find(from.index);
        if (copy == crossing_of.end()) {
          idle = false;
          continue;
        }
        passes(*copy->second, copy->second->from);
        for (const NodeId reader : readers[input.index]) {
          if (!lowered.nodes[reader.index].is_view()) idle = false;  // it is needed here anyway
        }
      }
      for (const ValueId output : graph.nodes[n].outputs) {
        for (const NodeId reader : readers[output.index]) {
          if (lowered.nodes[reader.index].is_view()) continue;
          const auto copy = crossing_of.find(reader.index);
          if (copy == crossing_of.end()) {
            idle = false;
          } else {
            passes(*copy->second, copy->second->to);
          }
        }
      }
    }
    if (!idle || view.bytes == 0) continue;
    const auto known = std::find_if(found.begin(), found.end(), [&](const IdleView& other) {
      return other.path == view.path && other.device == view.device;
    });
    if (known == found.end()) {
      found.push_back(view);
    } else {
      known->bytes += view.bytes;  // forward and backward of one operator
    }
  }
  return found;
}

}  // namespace tandem
