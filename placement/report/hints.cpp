#include "placement/report/hints.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "engine/formats/count_text.h"
#include "engine/graph/error.h"
#include "engine/operators/operator.h"
#include "placement/quantities.h"

namespace tandem {
namespace {

using Hint = api::Plan::Hint;

/// `rule`: the one that causes it; -1: none does.
Hint new_hint(Hint::Kind kind, const std::string& path, std::size_t bytes, const Policy& policy,
              int rule) {
  Hint hint;
  hint.kind = kind;
  hint.path = path;
  hint.bytes = bytes;
  if (rule < 0) return hint;
  const PolicyRule& by = policy.rules[static_cast<std::size_t>(rule)];
  hint.at = by.at.text();
  hint.file = by.where.file;
  hint.line = by.where.line;
  return hint;
}

void add_view_hints(const Policy& policy, const ResolvedPolicy& resolved, const PlannedStep& step,
                    std::vector<Hint>& hints) {
  for (const IdleView& view : step.views) {
    int rule = -1;
    if (const OperatorAttributes* op = resolved.find_node(view.path)) rule = op->run.reason.rule;
    Hint hint = new_hint(Hint::Kind::view, view.path, view.bytes, policy, rule);
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

void add_home_hints(const Policy& policy, const ResolvedPolicy& resolved, const PlannedStep& step,
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
    Hint hint = new_hint(Hint::Kind::home, *home.parameters.begin(), home.bytes, policy, key.first);
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

}  // namespace

std::vector<api::Plan::Hint> hints_of(const Policy& policy, const ResolvedPolicy& resolved,
                                      const PlannedStep& step) {
  std::vector<Hint> hints;
  for (const Diagnostic& misfit : step.misfits) {
    Hint& hint = hints.emplace_back(new_hint(Hint::Kind::memory, misfit.path, 0, policy, -1));
    hint.message = misfit.message;
    hint.fix = misfit.fix;
  }
  add_view_hints(policy, resolved, step, hints);
  add_home_hints(policy, resolved, step, hints);
  for (const CacheCost& cache : step.caches) {
    if (cache.pays()) continue;
    Hint& hint = hints.emplace_back(new_hint(Hint::Kind::cache, "", 0, policy, cache.rule));
    hint.message = cache.message();
    hint.fix = cache.fix();
  }
  return hints;
}

}  // namespace tandem
