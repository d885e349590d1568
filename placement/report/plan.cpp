#include "placement/report/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "engine/formats/count_text.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"
#include "engine/lower/reorder_note.h"
#include "engine/operators/operator.h"
#include "placement/quantities.h"
#include "placement/report/check.h"
#include "placement/report/json.h"
#include "placement/report/placement_report.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_copies = 40;  // in the text

struct Hint {
  std::string kind;  // "view", "home", "memory", "cache"
  std::string path;
  std::size_t bytes = 0;  // a step
  int rule = -1;
  std::string message, fix;
};

void add_view_hints(const ResolvedPolicy& resolved, const PlannedStep& step,
                    std::vector<Hint>& hints) {
  for (const IdleView& view : step.views) {
    Hint hint{"view", view.path, view.bytes, -1, "", ""};
    if (const OperatorAttributes* op = resolved.find_node(view.path)) {
      hint.rule = op->run.reason.rule;
    }
    const std::string& there = resolved.device_name(view.neighbours);
    hint.message = fmt::format(
        "{} is on {} and only changes a shape, while all around it is on {}: {} bytes cross every "
        "step for nothing",
        view.path, resolved.device_name(view.device), there, view.bytes);
    hint.fix = fmt::format("add {{ at = \"{}\", run = \"{}\" }}", view.path, there);
    hints.push_back(std::move(hint));
  }
}

/// Where the copies that begin at `value` end: between accelerators there are two of them.
ValueId end_of_copies(const Graph& graph, ValueId value) {
  for (const Node& node : graph.nodes) {  // in order: one walk is enough
    if (node.op->role == Role::transfer && node.inputs[0] == value) value = node.outputs[0];
  }
  return value;
}

ValueId start_of_copies(const Graph& graph, ValueId value) {
  for (NodeId from = graph.value(value).producer;
       from && graph.node(from).op->role == Role::transfer; from = graph.value(value).producer) {
    value = graph.node(from).inputs[0];
  }
  return value;
}

/// The parameter whose weight, gradient or new weight is copied, or "" where it is none of these.
/// `weight`: it is the weight itself, from its home to its readers.
std::string moved_parameter(const Graph& graph, const Crossing& crossing, bool& weight) {
  const Node& node = graph.node(crossing.node);
  const ValueId start = start_of_copies(graph, node.inputs[0]);
  const ValueId end = end_of_copies(graph, node.outputs[0]);
  weight = false;
  for (const State& state : graph.states) {
    if (state.kind != StateKind::parameter) continue;
    if (state.final == end && state.derived.is<Mirror>()) return state.source<Mirror>();
    if (state.initial == start) {
      weight = true;
      return state.source<Mirror>();
    }
  }
  // A gradient comes after its parameter among the operands of an update.
  for (const Node& reader : graph.nodes) {
    // GemmSgd takes the factors of the gradient: activations
    if (reader.phase != Phase::update || reader.op->role == Role::product_update) continue;
    std::string last;
    for (const ValueId input : reader.inputs) {
      if (input == end) return last;
      for (const State& state : graph.states) {
        if (state.kind == StateKind::parameter && state.initial == input) last = state.name;
      }
    }
  }
  return "";
}

void add_home_hints(const ResolvedPolicy& resolved, const PlannedStep& step,
                    std::vector<Hint>& hints) {
  struct Home {
    std::set<std::string> parameters;
    std::size_t bytes = 0;
    int home = 0, run = 0;
  };
  std::map<std::pair<int, bool>, Home> homes;  // by deciding rule; true: the weight
  std::size_t at = 0;
  for (const PlannedMicroBatch& micro_batch : step.micro_batches) {
    const Graph& graph = micro_batch.program.lowered.graph;
    const std::size_t count =
        crossings_of(micro_batch.program.lowered, micro_batch.program.plan).size();
    for (std::size_t end = at + count; at < end; ++at) {
      const Crossing& crossing = step.crossings[at];
      if (crossing.scalar()) continue;
      bool weight = false;
      const std::string name = moved_parameter(graph, crossing, weight);
      const ParameterAttributes* parameter = name.empty() ? nullptr : resolved.find_parameter(name);
      if (!parameter) continue;
      const Reason& reason = weight ? parameter->param.reason : parameter->state.reason;
      if (reason.rule < 0 || reason.follows) continue;
      const int where = weight ? parameter->param.value : parameter->state.value;
      const int run = parameter->run.empty() ? 0 : parameter->run[0];
      if (where == run) continue;  // an update in place reads what its gradient is made of
      Home& home = homes[{reason.rule, weight}];
      home.parameters.insert(name);
      home.bytes += crossing.bytes * static_cast<std::size_t>(crossing.times);
      home.home = where;
      home.run = run;
    }
  }
  for (const auto& [key, home] : homes) {
    Hint hint{"home", *home.parameters.begin(), home.bytes, key.first, "", ""};
    const std::string& run = resolved.device_name(home.run);
    hint.message = fmt::format("{} of {} on {}, computed with on {}: {} cross every step",
                               key.second ? "weights" : "state",
                               count_text(home.parameters.size(), "parameter"),
                               resolved.device_name(home.home), run, bytes_text(home.bytes));
    hint.fix = fmt::format("{} = \"{}\" saves them and takes the memory there",
                           key.second ? "param" : "state", run);
    hints.push_back(std::move(hint));
  }
}

std::vector<Hint> hints_of(const ResolvedPolicy& resolved, const PlannedStep& step) {
  std::vector<Hint> hints;
  for (const Diagnostic& misfit : step.misfits) {
    hints.push_back({"memory", misfit.path, 0, -1, misfit.message, misfit.fix});
  }
  add_view_hints(resolved, step, hints);
  add_home_hints(resolved, step, hints);
  for (const CacheCost& cache : step.caches) {
    if (!cache.pays()) hints.push_back({"cache", "", 0, cache.rule, cache.message(), cache.fix()});
  }
  return hints;
}

Json hint_json(const Hint& hint, const Policy& policy) {
  Json json{{"kind", hint.kind}, {"path", hint.path}, {"bytes", hint.bytes}};
  if (hint.rule >= 0) {
    const PolicyRule& rule = policy.rules[hint.rule];
    json["file"] = rule.where.file;
    json["line"] = rule.where.line;
    json["rule"] = rule.at.text();
  }
  json["message"] = hint.message;
  json["fix"] = hint.fix;
  return json;
}

std::string memory_block(const ResolvedPolicy& resolved, const PlannedStep& step) {
  std::string text = fmt::format(
      "memory      {:>11} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11}  {}\n", "parameters",
      "gradients", "state", "activations", "workspace", "peak", "limit", "peak at");
  for (std::size_t d = 0; d < step.memory.size(); ++d) {
    const MemoryUse& use = step.memory[d];
    text += fmt::format("  {:<9} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11}  {}\n",
                        resolved.device_name(static_cast<int>(d)), bytes_text(use.parameters),
                        bytes_text(use.gradients), bytes_text(use.state),
                        bytes_text(use.activations), bytes_text(use.workspace),
                        bytes_text(use.peak), step.limited[d] ? bytes_text(step.limits[d]) : "-",
                        use.peak_at.empty() ? "start" : use.peak_at);
  }
  return text;
}

std::string size_text(const Crossing& crossing) {
  if (!crossing.rows) return bytes_text(crossing.bytes);
  std::string text = crossing.ahead ? "ahead " : "";
  text += "at most " + bytes_text(crossing.bytes);
  if (crossing.expected_bytes) text += ", about " + bytes_text(*crossing.expected_bytes);
  return text;
}

std::string copies_block(const ResolvedPolicy& resolved, const PlannedStep& step) {
  const Traffic traffic = traffic_of(step.crossings);
  std::string text = fmt::format("copies      {} a step, {} bytes ({})", traffic.copies,
                                 traffic.bytes, bytes_text(traffic.bytes));
  if (traffic.rows) text += " at most";
  if (traffic.counted) text += ", about " + bytes_text(traffic.expected_bytes);
  if (traffic.scalar_copies > 0) text += fmt::format("; {} of scalars", traffic.scalar_copies);
  text += "\n";
  std::vector<const Crossing*> shown;
  for (const Crossing& crossing : step.crossings) {
    if (!crossing.scalar()) shown.push_back(&crossing);
  }
  const std::size_t all = shown.size();
  if (all > most_copies) {
    std::stable_sort(shown.begin(), shown.end(), [](const Crossing* a, const Crossing* b) {
      return a->bytes * static_cast<std::size_t>(a->times) >
             b->bytes * static_cast<std::size_t>(b->times);
    });
    shown.resize(most_copies);
  }
  for (const Crossing* crossing : shown) {
    const std::string consumers = joined(crossing->consumers);
    const std::string route =
        resolved.device_name(crossing->from) + " > " + resolved.device_name(crossing->to);
    text += fmt::format(
        "  {:>11} {:<14} {:<8} {:<18} {} -> {}{}\n", size_text(*crossing), route,
        phase_name(crossing->phase),
        crossing->hidden() ? "hidden" : fmt::format("exposed {:.3f} ms", crossing->exposed_ms),
        crossing->producer, consumers,
        crossing->times > 1 ? fmt::format(" ({} times)", crossing->times) : "");
  }
  if (all > shown.size()) text += fmt::format("  ... and {} smaller ones\n", all - shown.size());
  return text;
}

// Sums over a whole step of one rank.
struct ExchangeSums {
  std::int64_t exchanges = 0;
  std::size_t bytes = 0;
  double milliseconds = 0, exposed_ms = 0;
};

ExchangeSums exchange_sums(const PlannedStep& step) {
  ExchangeSums sums;
  for (const PlannedExchange& exchange : step.exchanges) {
    const auto times = static_cast<double>(exchange.times);
    sums.exchanges += exchange.times;
    sums.bytes += exchange.bytes * static_cast<std::size_t>(exchange.times);
    sums.milliseconds += exchange.milliseconds * times;
    sums.exposed_ms += exchange.exposed_ms * times;
  }
  return sums;
}

std::string ranks_block(const ResolvedPolicy& resolved, const PlannedStep& step) {
  if (step.ranks == 1) return "";
  const ExchangeSums sums = exchange_sums(step);
  std::string text = fmt::format(
      "ranks       {}, this is the plan of one: {} exchanges a step, {}, {:.3f} ms on the network, "
      "exposed {:.3f} ms\n",
      step.ranks, sums.exchanges, bytes_text(sums.bytes), sums.milliseconds, sums.exposed_ms);
  for (const PlannedExchange& exchange : step.exchanges) {
    text += fmt::format("  {:>11} {:<14} {:<8} {:<18} {} ({}) {}{}{}\n", bytes_text(exchange.bytes),
                        resolved.device_name(exchange.device), phase_name(exchange.phase),
                        exchange.exposed_ms < 1e-6
                            ? "hidden"
                            : fmt::format("exposed {:.3f} ms", exchange.exposed_ms),
                        exchange.op, exchange.algorithm, exchange.path,
                        exchange.operands > 1 ? fmt::format(" of {}", exchange.operands) : "",
                        exchange.times > 1 ? fmt::format(" ({} times)", exchange.times) : "");
  }
  return text;
}

Json ranks_json(const ResolvedPolicy& resolved, const PlannedStep& step) {
  const ExchangeSums sums = exchange_sums(step);
  Json exchanges = Json::array();
  for (const PlannedExchange& exchange : step.exchanges) {
    exchanges.push_back({{"op", exchange.op},
                         {"path", exchange.path},
                         {"algorithm", exchange.algorithm},
                         {"device", resolved.device_name(exchange.device)},
                         {"phase", phase_name(exchange.phase)},
                         {"operands", exchange.operands},
                         {"bytes", exchange.bytes},
                         {"ms", exchange.milliseconds},
                         {"exposed_ms", exchange.exposed_ms},
                         {"times", exchange.times}});
  }
  return {{"ranks", step.ranks},
          {"bytes", sums.bytes},
          {"ms", sums.milliseconds},
          {"exposed_ms", sums.exposed_ms},
          {"exchanges", exchanges}};
}

}  // namespace

std::string plan_json(const Policy& policy, const ResolvedPolicy& resolved, const PlannedStep& step,
                      const std::vector<Remedy>& remedies) {
  const std::vector<Hint> hints = hints_of(resolved, step);
  Json placed = Json::object(), devices = Json::object(), transfers = Json::array(),
       list = Json::array();
  const std::vector<ItemCounts> counts = resolved.counts_by_device();
  for (std::size_t d = 0; d < counts.size(); ++d)
    placed[resolved.devices[d].name] = counts_json(counts[d]);
  for (std::size_t d = 0; d < step.memory.size(); ++d) {
    const MemoryUse& use = step.memory[d];
    devices[resolved.device_name(static_cast<int>(d))] = {
        {"parameters", use.parameters},   {"gradients", use.gradients}, {"state", use.state},
        {"activations", use.activations}, {"workspace", use.workspace}, {"peak", use.peak},
        {"peak_at", use.peak_at}};
    Json& device = devices[resolved.device_name(static_cast<int>(d))];
    device["limit"] = step.limited[d] ? Json(step.limits[d]) : Json();
    if (!step.limited[d]) device["memory"] = step.limits[d];
  }
  for (const Crossing& crossing : step.crossings) {
    transfers.push_back({{"bytes", crossing.bytes},
                         {"from", resolved.device_name(crossing.from)},
                         {"to", resolved.device_name(crossing.to)},
                         {"producer", crossing.producer},
                         {"consumers", crossing.consumers},
                         {"hidden", crossing.hidden()},
                         {"exposed_ms", crossing.exposed_ms},
                         {"value", crossing.value},
                         {"phase", phase_name(crossing.phase)},
                         {"scalar", crossing.scalar()},
                         {"times", crossing.times}});
    if (crossing.rows) transfers.back()["rows"] = true;
    if (crossing.ahead) transfers.back()["ahead"] = true;
    if (crossing.expected_bytes) transfers.back()["expected_bytes"] = *crossing.expected_bytes;
  }
  const Traffic traffic = traffic_of(step.crossings);
  for (const Hint& hint : hints) list.push_back(hint_json(hint, policy));
  Json sums{{"copies", traffic.copies},
            {"bytes", traffic.bytes},
            {"scalar_copies", traffic.scalar_copies},
            {"scalar_bytes", traffic.scalar_bytes}};
  if (traffic.counted) sums["expected_bytes"] = traffic.expected_bytes;
  Json plan{{"placed", placed},
            {"devices", devices},
            {"transfers", transfers},
            {"traffic", sums},
            {"time",
             {{"step_ms", step.seconds * 1e3},
              {"computing_ms", step.computing * 1e3},
              {"exposed_copies_ms", step.exposed * 1e3}}}};
  if (step.ranks > 1) plan["exchange"] = ranks_json(resolved, step);
  plan["hints"] = list;
  plan["fits"] = step.fits();
  plan["remedies"] = Json::array();
  for (const Remedy& remedy : remedies) {
    plan["remedies"].push_back({{"rule", to_toml(remedy.rule)},
                                {"bytes", remedy.bytes},
                                {"suffices", remedy.suffices},
                                {"step_ms", remedy.seconds * 1e3}});
  }
  return json_text(plan);
}

std::string plan_text(const Policy& policy, const ResolvedPolicy& resolved, const PlannedStep& step,
                      const std::vector<Remedy>& remedies) {
  const std::vector<Hint> hints = hints_of(resolved, step);
  std::string text = "placed      " + devices_text(resolved) + "\n" + memory_block(resolved, step) +
                     copies_block(resolved, step) + ranks_block(resolved, step);
  text += fmt::format(
      "time        {:.3f} ms a step by the cost model: computing {:.3f} ms, waiting for copies "
      "{:.3f} "
      "ms\n",
      step.seconds * 1e3, step.computing * 1e3, step.exposed * 1e3);
  if (!step.limited[0] && step.memory[0].peak > step.limits[0]) {
    text += fmt::format("note        the host has {}: the rest of {} would swap\n",
                        bytes_text(step.limits[0]), bytes_text(step.memory[0].peak));
  }
  for (const Diagnostic& note : resolved.notes) text += "note        " + to_string(note) + "\n";
  for (const std::string& note : step.micro_batches.back().program.lowered.notes) {
    if (!is_reorder_note(note)) text += "note        " + note + "\n";
  }
  for (const Hint& hint : hints) {
    const std::string rule = rule_text(policy, hint.rule);
    text += "hint        " + (rule.empty() ? "" : rule + ": ") + hint.message + "\n";
    if (!hint.fix.empty()) text += "            " + hint.fix + "\n";
  }
  if (!step.fits()) {
    text += "fits: no\n";
    for (const Diagnostic& misfit : step.misfits) text += "  " + to_string(misfit) + "\n";
    return text + remedies_text(remedies);
  }
  std::string spare;
  for (std::size_t d = 1; d < step.memory.size(); ++d) {
    spare +=
        fmt::format("{}{} {}", spare.empty() ? "" : ", ", resolved.device_name(static_cast<int>(d)),
                    bytes_text(step.limits[d] - step.memory[d].peak));
  }
  return text + "fits: yes" + (spare.empty() ? "" : " (spare: " + spare + ")") + "\n";
}

}  // namespace tandem
