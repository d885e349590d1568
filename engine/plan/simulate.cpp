#include "engine/plan/simulate.h"

#include <algorithm>

#include "engine/graph/text.h"
#include "engine/operators/collectives/collective.h"
#include "engine/operators/operator.h"
#include "engine/operators/tables/rows.h"

namespace tandem {
namespace {

constexpr int steps_to_steady = 4;  // the last of them is the steady state

// How much of its node's elements a part computes.
double share_of(const Instruction& instruction, const Graph& graph) {
  if (instruction.parts == 1) return 1;
  const auto first = std::find_if(instruction.accesses.begin(), instruction.accesses.end(),
                                  [](const Access& access) { return access.write; });
  if (first == instruction.accesses.end()) return 1.0 / instruction.parts;
  return static_cast<double>(first->end - first->begin) /
         static_cast<double>(graph.type(graph.node(instruction.node).outputs[0]).bytes());
}

// About which part of `ids` names a row; the operator that makes them says it in `filled`. There is
// room for all ids that ranks may send, and each rank keeps only some of the rows.
double filled_ids(const Graph& graph, ValueId ids) {
  const NodeId producer = graph.value(ids).producer;
  if (!producer) return 1;
  const Attributes& made = graph.node(producer).attributes;
  return made.find("filled") != nullptr ? made.number("filled") : 1;
}

// Which part of its full cost a node has that looks up, groups or updates the rows of such ids.
double filled_part(const Graph& graph, const Node& node) {
  const auto maker = [&](std::size_t input) -> const Node* {
    const NodeId producer = graph.value(node.inputs[input]).producer;
    return producer ? &graph.node(producer) : nullptr;
  };
  const auto as_of = [&](const Node* groups) {
    return groups != nullptr && groups->op->role == Role::id_groups ? filled_part(graph, *groups)
                                                                    : 1.0;
  };
  if (node.op->role == Role::rows_norm) return as_of(maker(0));
  if (node.op->role == Role::rows_update)
    return node.attributes.flag("lazy") ? as_of(maker(RowsOperands(node).unique())) : 1;
  if (node.op->role == Role::embedding_bag) {
    // All ids are read and all sums written, but not all rows read.
    double other = static_cast<double>(graph.type(node.outputs[0]).bytes());
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      if (node.inputs[i]) other += static_cast<double>(graph.type(node.inputs[i]).bytes());
    }
    const double bytes = std::max(cost_of(graph, node).bytes, other);
    return (other + (bytes - other) * filled_ids(graph, node.inputs[1])) / std::max(bytes, 1.0);
  }
  if (node.op->role != Role::id_groups) return 1;
  double ids = 0, filled = 0;
  for (const ValueId input : node.inputs) {
    const auto count = static_cast<double>(graph.type(input).elements());
    ids += count;
    filled += count * filled_ids(graph, input);
  }
  return ids > 0 ? filled / ids : 1;
}

std::string settings_text(const Node& node) {
  std::string text = node.op->name;
  const char* separator = " {";
  for (const auto& [name, value] : node.attributes.entries()) {
    text += separator + name + "=" + to_string(value);
    separator = ", ";
  }
  return node.attributes.entries().empty() ? text : text + "}";
}

}  // namespace

std::string request_text(const Graph& graph, const Node& node) {
  std::string text = settings_text(node) + " (";
  const auto add_types = [&](const std::vector<ValueId>& values) {
    text += joined(values, ", ",
                   [&](ValueId value) { return value ? to_string(graph.type(value)) : "-"; });
  };
  add_types(node.inputs);
  text += ") -> (";
  add_types(node.outputs);
  text += ")";
  if (!node.body) return text;
  text += " [";
  for (const Node& inner : node.body->nodes) {  // values by their number in the body
    text += settings_text(inner) + " (";
    for (const ValueId input : inner.inputs) text += std::to_string(input.index) + " ";
    text += ">";
    for (const ValueId output : inner.outputs) text += " " + std::to_string(output.index);
    text += ");";
  }
  return text + "]";
}

ChosenCollective chosen_collective(const Graph& graph, const Node& node,
                                   const DeviceProfile& profile) {
  const bool is_fixed = profile.collectives == CollectiveLibrary::messages;
  return choose_collective(
      profile.collectives, collective_work(graph, node),
      is_fixed ? assumed_bytes_a_message : profile.network_bandwidth * profile.network_latency);
}

double seconds_of(const Instruction& instruction, const Lowered& lowered,
                  const DeviceProfile& profile) {
  switch (instruction.kind) {
    case Instruction::Kind::run: {
      const Node& node = lowered.graph.node(instruction.node);
      const double share = share_of(instruction, lowered.graph);
      if (!profile.measured.empty()) {
        const auto known = profile.measured.find(request_text(lowered.graph, node));
        if (known != profile.measured.end()) return share * known->second;
      }
      const Cost cost = cost_of(lowered.graph, node);
      return share * filled_part(lowered.graph, node) *
                 std::max(cost.flops / profile.flops, cost.bytes / profile.bandwidth) +
             profile.overhead;
    }
    case Instruction::Kind::copy: {
      double bytes = 0;
      for (const Access& access : instruction.accesses) {
        if (access.write) bytes += static_cast<double>(access.end - access.begin);
      }
      return bytes / profile.link_bandwidth + profile.link_latency;
    }
    case Instruction::Kind::collective: {
      // What has come is added up while the next bytes come.
      const CollectiveCost cost =
          chosen_collective(lowered.graph, lowered.graph.node(instruction.node), profile).cost;
      return cost.bytes / profile.network_bandwidth + cost.messages * profile.network_latency;
    }
    default:
      return 0;
  }
}

DeviceProfile assumed_profile(const DeviceFacts& facts) {
  DeviceProfile profile;
  const double per_thread = facts.has("avx512") ? 100e9 : facts.has("avx2") ? 80e9 : 10e9;
  profile.flops = per_thread * facts.threads;
  profile.bandwidth = 20e9 * facts.threads;
  return profile;
}

namespace {

class Simulator {
 public:
  Simulator(const Plan& plan, const Lowered& lowered, const std::vector<DeviceProfile>& profiles,
            int steps)
      : plan_(plan), steps_(steps), recorder_(plan.events, -1) {
    result_.queues.resize(plan.queues.size());
    for (std::size_t q = 0; q < plan.queues.size(); ++q) {
      const std::vector<Instruction>& list = plan.queues[q].instructions;
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i].kind == Instruction::Kind::record) {
          recorder_[list[i].event] = static_cast<int>(result_.spans.size()) - 1;
        } else if (list[i].kind != Instruction::Kind::wait) {
          const DeviceProfile& profile = profiles[plan.queues[q].device];
          SimulatedSpan& span = result_.spans.emplace_back();
          span.queue = static_cast<int>(q);
          span.index = static_cast<int>(i);
          seconds_.push_back(seconds_of(list[i], lowered, profile));
          if (list[i].kind != Instruction::Kind::collective) continue;
          const Node& node = lowered.graph.node(list[i].node);
          span.algorithm = chosen_collective(lowered.graph, node, profile).algorithm->name;
        }
      }
    }
  }

  /// The spans of every step, not only those of the last one.
  Simulation run_keeping_all() {
    const std::vector<SimulatedSpan> step = result_.spans;
    step_spans_ = step.size();
    for (int i = 1; i < steps_; ++i)
      result_.spans.insert(result_.spans.end(), step.begin(), step.end());
    return run();
  }

  Simulation run() {
    const std::size_t count = plan_.queues.size();
    now_.assign(count, 0);
    span_.assign(count, 0);
    std::vector<std::size_t> first(count, 0), next(count, 0);  // next: over all steps
    for (std::size_t i = 0; i < seconds_.size(); ++i) {
      for (std::size_t q = result_.spans[i].queue + 1; q < count; ++q) ++first[q];
    }
    started_.assign(steps_ + 1, 0);
    events_.assign(steps_, std::vector<double>(plan_.events, -1));
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t q = 0; q < count; ++q) {
        const std::size_t length = plan_.queues[q].instructions.size();
        while (length > 0 && next[q] < steps_ * length) {
          const int step = static_cast<int>(next[q] / length);
          if (next[q] % length == 0) span_[q] = first[q];
          if (!advance(q, next[q] % length, step)) break;
          ++next[q];
          moved = true;
          if (next[q] % length == 0) started_[step + 1] = std::max(started_[step + 1], now_[q]);
        }
      }
    }
    result_.seconds = started_[steps_] - started_[steps_ - 1];
    return std::move(result_);
  }

 private:
  // Runs one instruction; false where it waits for what has not happened yet.
  bool advance(std::size_t q, std::size_t index, int step) {
    const Instruction& instruction = plan_.queues[q].instructions[index];
    const bool last = step == steps_ - 1;
    if (instruction.kind == Instruction::Kind::wait) {
      const int of = step - instruction.steps_back;
      const double at = of < 0 ? 0 : events_[of][instruction.event];
      if (at < 0) return false;
      const double waited = std::max(0.0, at - now_[q]);
      if (last) {
        result_.queues[q].waiting += waited;
        if (waited > 0)
          result_.waits.push_back({static_cast<int>(q), static_cast<int>(index), waited});
        const int by = recorder_[instruction.event];
        if (by >= 0 && computes(q)) result_.spans[step * step_spans_ + by].exposed += waited;
      }
      now_[q] += waited;
    } else if (instruction.kind == Instruction::Kind::record) {
      events_[step][instruction.event] = now_[q];
    } else {
      const double seconds = seconds_[span_[q]];
      SimulatedSpan& span = result_.spans[step * step_spans_ + span_[q]++];
      span.start = now_[q];
      now_[q] += seconds;
      span.end = now_[q];
      if (last) result_.queues[q].busy += seconds;
    }
    return true;
  }

  bool computes(std::size_t q) const { return plan_.queues[q].role == Queue::Role::compute; }

  const Plan& plan_;
  const int steps_;
  std::size_t step_spans_ = 0;  // distance of a step's spans to the next's; 0: they are replaced
  Simulation result_;
  std::vector<int> recorder_;    // per event: the span that it marks the end of
  std::vector<double> seconds_;  // per span
  std::vector<double> now_, started_;
  std::vector<std::size_t> span_;
  std::vector<std::vector<double>> events_;  // per step and event
};

}  // namespace

Simulation simulate(const Plan& plan, const Lowered& lowered,
                    const std::vector<DeviceProfile>& profiles) {
  return Simulator(plan, lowered, profiles, steps_to_steady).run();
}

std::vector<SimulatedSpan> simulate_from_rest(const Plan& plan, const Lowered& lowered,
                                              const std::vector<DeviceProfile>& profiles,
                                              int steps) {
  return Simulator(plan, lowered, profiles, steps).run_keeping_all().spans;
}

}  // namespace tandem
