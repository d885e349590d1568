#include "placement/report/explain.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"
#include "engine/operators/operator.h"
#include "engine/passes/tables/cached_tables.h"
#include "placement/quantities.h"
#include "placement/report/explain_groups.h"
#include "placement/report/json.h"
#include "placement/report/rule_data.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void no_such_name(const ResolvedPolicy& resolved, const std::string& name) {
  std::vector<std::string> names;
  for (const OperatorAttributes& op : resolved.operators) names.push_back(op.path);
  for (const ParameterAttributes& p : resolved.parameters) {
    names.push_back(p.name);
    if (!p.path.empty()) names.push_back(p.path);
  }
  std::vector<std::string> near{nearest_name(name, names)};
  const std::string selector = nearest_selector(name, names);
  if (selector != near[0]) near.push_back(selector);
  std::erase(near, "");
  Diagnostic d{.message = "no operator or parameter has this name, and no module", .path = name};
  d.fix = did_you_mean(joined(near, "\" or \""), "`tandem policy names` lists them");
  throw Error(ErrorKind::usage, std::move(d));
}

/// Which of the explained operators and parameters the nodes of a program belong to.
class Belonging {
 public:
  Belonging(const Graph& graph, const Explained& explained) {
    for (std::size_t r = 0; r < explained.readers.size(); ++r)
      readers_.try_emplace(explained.readers[r], r);
    for (const State& state : graph.states) {
      const std::string& of = state.parameter.empty() ? state.name : state.parameter;
      if (explained.parameters.contains(of) && state.final && !(state.final == state.initial))
        written_[state.final.index].insert(of);
    }
  }

  /// Index of the first operator that the node belongs to; -1: there is none.
  int reader(const Node& node) const {
    std::size_t first = readers_.size();
    const auto look = [&](const std::string& path) {
      if (const auto found = readers_.find(path); found != readers_.end())
        first = std::min(first, found->second);
    };
    look(node.path);
    for (const std::string& origin : node.origins) look(origin);
    return first == readers_.size() ? -1 : static_cast<int>(first);
  }

  /// Parameters whose values, moments or copies on other devices the node writes.
  std::set<std::string> updated(const Node& node) const {
    std::set<std::string> all;
    for (const ValueId output : node.outputs) {
      if (!output) continue;
      if (const auto found = written_.find(output.index); found != written_.end())
        all.insert(found->second.begin(), found->second.end());
    }
    return all;
  }

 private:
  std::unordered_map<std::string, std::size_t> readers_;
  std::unordered_map<std::int32_t, std::set<std::string>> written_;  // by value
};

/// The device that the strongest rule asked for, whether or not it has kernels.
int requested_device(const Decided<int>& attribute) {
  const std::vector<FallBack>& fallen = attribute.reason.fallen;
  return fallen.empty() ? attribute.value : fallen[0].device;
}

/// Whether rows of the table are fetched a step ahead, as its rule says, or why not.
ExplainedAttribute rows_ahead(const ParameterAttributes& table, const Lowered& lowered,
                              std::list<Reason>& reasons) {
  Reason& reason = reasons.emplace_back();
  reason.rule = table.lookahead.reason.rule;
  reason.text = table.lookahead.reason.text + ": ";
  const std::vector<State>& states = lowered.graph.states;
  if (std::any_of(states.begin(), states.end(), [&](const State& state) {
        return state.derived.is_of<PrefetchedRows>(table.name);
      })) {
    reason.text +=
        "what the next step reads and this one does not change is copied during this one";
    if (table.lookahead.value > 1)
      reason.text += "; " + std::to_string(table.lookahead.value) + " act as 1";
    return {"ahead", "1 step", &reason};
  }
  const std::string note = not_ahead_note(table.path.empty() ? table.name : table.path);
  std::set<std::string> why;  // each lookup has one
  for (const std::string& each : lowered.notes) {
    if (each.starts_with(note)) why.insert(each.substr(note.size()));
  }
  if (why.empty()) why.insert("no lookup on the host is read by only one accelerator");
  reason.text += fmt::format("{}", fmt::join(why, "; "));
  return {"ahead", "no", &reason};
}

/// Why a node is on another device than the one that was asked for.
std::string why_elsewhere(const ExplainedNode& node, const PlacedRow& row,
                          const ResolvedPolicy& resolved, const Explained& of) {
  const auto because = [&](const Reason& reason) -> std::string {
    for (const FallBack& fallen : reason.fallen) {
      if (fallen.device == node.requested) return fallen.because;
    }
    return "";
  };
  std::string why;
  for (const std::string& reader : of.readers) {
    const OperatorAttributes* op = resolved.find_node(reader);
    if (why.empty() && op != nullptr) why = because(op->run.reason);
  }
  for (const std::string& name : of.parameters) {
    const ParameterAttributes* parameter = resolved.find_parameter(name);
    if (why.empty() && parameter != nullptr) why = because(parameter->state.reason);
  }
  return why.empty() ? row.reason : why;
}

std::string cost_text(const Explained& explained) {
  if (!explained.cost) return "";
  const ExplainedCost& cost = *explained.cost;
  std::string text = fmt::format(
      "  {:<10} {:.3f} ms of kernels in a step of {:.3f} ms, by the "
      "cost model",
      "cost", cost.kernels() * 1e3, cost.step * 1e3);
  std::string phases;
  for (const auto& [phase, seconds] :
       {std::pair{Phase::forward, cost.forward}, std::pair{Phase::backward, cost.backward},
        std::pair{Phase::update, cost.update}}) {
    if (seconds > 0)
      phases += fmt::format("{}{} {:.3f}", phases.empty() ? ": " : ", ", phase_name(phase),
                            seconds * 1e3);
  }
  text += phases;
  if (cost.copies > 0) {
    text += fmt::format("; {} copies between devices, {}, waited for {:.3f} ms", cost.copies,
                        bytes_text(static_cast<double>(cost.bytes)), cost.exposed * 1e3);
  }
  return text + "\n";
}

/// The first results of a node: a grouped update has three for each parameter.
std::string results_text(const std::vector<std::string>& results) {
  constexpr std::size_t most = 3;
  std::string text = joined(std::span(results).first(std::min(most, results.size())));
  if (results.size() > most) text += fmt::format(" and {} more", results.size() - most);
  return text;
}

}  // namespace

Explained explain(const ResolvedPolicy& resolved, const PolicyItems& items, const Graph& forward,
                  const std::string& name) {
  if (!resolved.find_node(name) && !resolved.find_parameter(name)) {
    std::optional<Explained> several = explain_selected(resolved, items, forward, name);
    if (several) return std::move(*several);
  }
  return explain(resolved, name);
}

Explained explain(const ResolvedPolicy& resolved, const std::string& name) {
  const OperatorAttributes* op = resolved.find_node(name);
  const ParameterAttributes* parameter = resolved.find_parameter(name);
  if (!op && !parameter) no_such_name(resolved, name);
  Explained result;
  if (op) {
    result.path = op->path;
    result.kind = "operator";
    result.attributes = {{"run", resolved.device_name(op->run.value), &op->run.reason},
                         {"acts", std::string(name_of(op->acts.value)), &op->acts.reason},
                         {"lookahead", std::to_string(op->lookahead.value), &op->lookahead.reason}};
    result.readers = {op->path};
    for (const ParameterAttributes& p : resolved.parameters) {
      if (p.kind == StateKind::parameter &&
          std::find(p.readers.begin(), p.readers.end(), op->path) != p.readers.end()) {
        result.parameters.insert(p.name);
        if (p.cached.rows) result.parameters.insert(cached_name(p.name));
      }
    }
  } else {
    result.path = parameter->path.empty() ? parameter->name : parameter->path;
    result.kind = parameter->kind == StateKind::parameter ? "parameter" : "buffer";
    result.attributes = {
        {"param", resolved.device_name(parameter->param.value), &parameter->param.reason},
        {"state", resolved.device_name(parameter->state.value), &parameter->state.reason},
        {"lookahead", std::to_string(parameter->lookahead.value), &parameter->lookahead.reason}};
    if (parameter->table) {
      result.attributes.push_back(
          {"ship", std::string(name_of(parameter->ship.value)), &parameter->ship.reason});
    }
    if (parameter->cache.reason.rule >= 0) {
      const std::string size = cache_text(parameter->cache.value);
      result.attributes.push_back(
          {"cache", parameter->cached.rows ? size : "none", &parameter->cache.reason});
    }
    if (parameter->shard.reason.rule >= 0) {
      result.attributes.push_back(
          {"shard", std::string(name_of(parameter->shard.value)), &parameter->shard.reason});
    }
    result.parameter = parameter;
    result.readers = parameter->readers;
    if (parameter->kind == StateKind::parameter) result.parameters.insert(parameter->name);
    if (parameter->cached.rows) result.parameters.insert(cached_name(parameter->name));
  }
  return result;
}

void add_nodes(const ResolvedPolicy& resolved, const Lowered& lowered, const std::string& phase,
               Explained& to) {
  if (to.parameter && to.parameter->fetches_ahead())
    to.attributes.push_back(rows_ahead(*to.parameter, lowered, to.reasons));
  const Belonging belonging(lowered.graph, to);
  for (PlacedRow& row : placed_rows(lowered, resolved)) {
    if (!phase.empty() && phase != phase_name(row.phase)) continue;
    const Node& node = lowered.graph.node(row.node);
    if (lowered.nodes[row.node.index].transfer) continue;
    ExplainedNode found;
    found.requested = row.device;
    found.reason = row.reason;
    if (row.phase == Phase::update) {
      const std::set<std::string> updated = belonging.updated(node);
      if (updated.empty()) continue;
      for (const std::string& name : updated) {
        const ParameterAttributes* parameter = resolved.find_parameter(name);
        if (!parameter) continue;  // a cache: the row's own reason
        found.requested = requested_device(parameter->state);
        found.reason = "state " + parameter->state.reason.text;
        found.rule = parameter->state.reason.rule;
      }
    } else {
      const int index = belonging.reader(node);
      if (index < 0) continue;
      const std::string& reader = to.readers[index];
      const OperatorAttributes* op = resolved.find_node(reader);
      if (!op) continue;
      found.rule = op->run.reason.rule;
      if (node.path != cached_name(reader)) {  // no cache's lookup, which follows the cache
        found.requested = requested_device(op->run);
        found.reason = op->run.reason.text;
        if (row.phase == Phase::backward)
          found.reason = "follows its operator " + reader + " (" + found.reason + ")";
      }
    }
    if (found.requested != row.device) found.why_not = why_elsewhere(found, row, resolved, to);
    found.row = std::move(row);
    to.nodes.push_back(std::move(found));
  }
}

void add_costs(const PlannedStep& step, Explained& to) {
  const PlannedMicroBatch& last = step.micro_batches.back();
  std::unordered_map<std::int32_t, double> seconds;  // by node of the last micro-batch
  for (const SimulatedSpan& span : last.simulation.spans) {
    const Queue& queue = last.program.plan.queues[static_cast<std::size_t>(span.queue)];
    const Instruction& instruction = queue.instructions[static_cast<std::size_t>(span.index)];
    if (instruction.kind == Instruction::Kind::run)
      seconds[instruction.node.index] += span.end - span.start;
  }
  std::int64_t micro_batches = 0;
  for (const PlannedMicroBatch& micro_batch : step.micro_batches)
    micro_batches += micro_batch.times;
  ExplainedCost& cost = to.cost.emplace();
  cost.step = step.seconds;
  for (ExplainedNode& node : to.nodes) {
    if (const auto found = seconds.find(node.row.node.index); found != seconds.end())
      node.seconds = found->second;
    const auto times = static_cast<double>(micro_batches);
    if (node.row.phase == Phase::forward) cost.forward += times * node.seconds;
    if (node.row.phase == Phase::backward) cost.backward += times * node.seconds;
    if (node.row.phase == Phase::update) cost.update += node.seconds;
  }
  std::set<std::string> names(to.readers.begin(), to.readers.end());
  names.insert(to.parameters.begin(), to.parameters.end());
  for (const Crossing& crossing : step.crossings) {
    const bool is_its = names.contains(crossing.producer) ||
                        std::any_of(crossing.consumers.begin(), crossing.consumers.end(),
                                    [&](const std::string& name) { return names.contains(name); });
    if (!is_its || crossing.scalar()) continue;
    cost.copies += crossing.times;
    cost.bytes += crossing.bytes * static_cast<std::size_t>(crossing.counted_times());
    cost.exposed += crossing.exposed * static_cast<double>(crossing.times);
  }
}

namespace {

std::string explain_json(const Policy& policy, const ResolvedPolicy& resolved,
                         const Explained& explained) {
  Json attributes = Json::object(), nodes = Json::array();
  for (const ExplainedAttribute& attribute : explained.attributes) {
    Json& json = attributes[attribute.name];
    json = {{"value", attribute.value}, {"reason", attribute.reason->text}};
    if (attribute.reason->rule >= 0) {
      json["rule"] = rule_json(policy, attribute.reason->rule);
      json["follows"] = attribute.reason->follows;
    }
    const std::vector<FallBack>& all = attribute.reason->fallen;
    json["requested"] = all.empty() ? attribute.value : resolved.device_name(all[0].device);
    json["fell_back"] = Json::array();
    for (const FallBack& fallen : attribute.reason->fallen) {
      json["fell_back"].push_back({{"requested", resolved.device_name(fallen.device)},
                                   {"reason", fallen.because},
                                   {"rule", rule_json(policy, fallen.rule)}});
    }
    json["overridden"] = Json::array();
    for (const int rule : attribute.reason->overridden) {
      json["overridden"].push_back(rule_json(policy, rule));
    }
  }
  for (const ExplainedNode& node : explained.nodes) {
    nodes.push_back({{"phase", phase_name(node.row.phase)},
                     {"op", node.row.op},
                     {"path", node.row.path},
                     {"results", node.row.results},
                     {"requested", resolved.device_name(node.requested)},
                     {"device", resolved.device_name(node.row.device)},
                     {"kernel", node.row.kernel},
                     {"reason", node.reason},
                     {"why_not", node.why_not},
                     {"ms", node.seconds * 1e3}});
  }
  Json json{{"path", explained.path}, {"kind", explained.kind}};
  if (!explained.groups.empty()) {
    json["counts"] = counts_json(explained.counts);
    json["groups"] = explained_groups_json(policy, resolved, explained);
  }
  if (explained.cost) {
    const ExplainedCost& cost = *explained.cost;
    json["cost"] = {{"forward_ms", cost.forward * 1e3},
                    {"backward_ms", cost.backward * 1e3},
                    {"update_ms", cost.update * 1e3},
                    {"step_ms", cost.step * 1e3},
                    {"copies", cost.copies},
                    {"copied_bytes", cost.bytes},
                    {"exposed_copies_ms", cost.exposed * 1e3}};
  }
  json["attributes"] = attributes;
  json["nodes"] = nodes;
  return json_text(json);
}

std::string explain_text(const Policy& policy, const ResolvedPolicy& resolved,
                         const Explained& explained) {
  if (!explained.groups.empty())
    return explained_groups_text(policy, resolved, explained) + cost_text(explained);
  std::string text = explained.path + " (" + explained.kind + ")\n";
  for (const ExplainedAttribute& attribute : explained.attributes) {
    text +=
        fmt::format("  {:<10} {:<10} {}", attribute.name, attribute.value, attribute.reason->text);
    if (attribute.reason->rule >= 0) {
      const PolicyRule& rule = policy.rules[attribute.reason->rule];
      text += "  " + selection_text(rule);
      if (!rule.why.empty()) text += "  (" + rule.why + ")";
    }
    for (const FallBack& fallen : attribute.reason->fallen) {
      text += fmt::format("\n  {:<21} requested {} by {}  {}: {}", "",
                          resolved.device_name(fallen.device), rule_text(policy, fallen.rule),
                          selection_text(policy.rules[fallen.rule]), fallen.because);
    }
    for (const int lost : attribute.reason->overridden) {
      text += fmt::format("\n  {:<21} overrides {}  {}", "", rule_text(policy, lost),
                          selection_text(policy.rules[lost]));
    }
    text += "\n";
  }
  for (const ExplainedNode& node : explained.nodes) {
    const std::string& device = resolved.device_name(node.row.device);
    text += fmt::format("  {:<10} {:<10} {} {} = {} [{}]: {}\n", phase_name(node.row.phase), device,
                        node.row.op, node.row.path, results_text(node.row.results), node.row.kernel,
                        node.reason);
    if (node.requested != node.row.device) {
      text += fmt::format("  {:<21} requested {}; it is here since: {}\n", "",
                          resolved.device_name(node.requested), node.why_not);
    }
  }
  return text + cost_text(explained);
}

api::Decision decision_of(const ExplainedAttribute& attribute, const Policy& policy,
                          const ResolvedPolicy& resolved) {
  const Reason& reason = *attribute.reason;
  api::Decision decision;
  decision.attribute = attribute_of(attribute.name);
  decision.value = attribute.value;
  decision.reason = reason.text;
  if (reason.rule >= 0) {
    const Where& where = policy.rules[static_cast<std::size_t>(reason.rule)].where;
    decision.file = where.file;
    decision.line = where.line;
  }
  if (!reason.fallen.empty()) {
    decision.requested = resolved.device_name(reason.fallen[0].device);
    decision.why_not = reason.fallen[0].because;
  }
  return decision;
}

}  // namespace

api::Explanation explanation_of(const Policy& policy, const ResolvedPolicy& resolved,
                                const Explained& explained) {
  api::Explanation explanation;
  explanation.path = explained.path;
  for (const ExplainedAttribute& attribute : explained.attributes)
    explanation.decisions.push_back(decision_of(attribute, policy, resolved));
  explanation.text = explain_text(policy, resolved, explained);
  explanation.json = explain_json(policy, resolved, explained);
  return explanation;
}

}  // namespace tandem
