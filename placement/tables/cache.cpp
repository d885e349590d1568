// `cache`: keeps rows of a host's table on the device where its lookups are read. The data decides
// which rows; what prevents a cache is noted.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/operators/operator.h"
#include "placement/resolver.h"

namespace tandem {
namespace {

bool is_lookup(const Node& node, ValueId table) {
  return node.op->name == "Gather" && node.inputs[0] == table;
}

}  // namespace

// Why the table cannot have a cache, or ""; `device` is where it would be.
std::string PolicyResolver::cache_obstacle(std::size_t p, int& device) const {
  const ParameterAttributes& parameter = result_.parameters[p];
  const State& state = graph_.states[items_.parameters[p].state];
  if (!parameter.table) return "not only lookups of rows read it";
  for (const NamedValue& output : graph_.outputs) {
    if (output.value == state.initial) return "it is an output of the model";
  }
  const DType dtype = graph_.type(state.initial).dtype;
  if (dtype != DType::float32 && dtype != DType::float64)
    return "its elements are " + std::string(name_of(dtype));
  for (const int home : {parameter.param.value, parameter.state.value}) {
    if (home != host) return "it is on " + names_.devices()[home].name + " already";
  }
  device = -1;
  for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
    const Node& node = graph_.nodes[n];
    if (!is_lookup(node, state.initial)) continue;
    const int item = items_.operator_of_node[n];
    const OperatorAttributes& lookup = result_.operators[item];
    if (lookup.run.value != host)
      return "its lookup " + lookup.path + " runs on " + names_.devices()[lookup.run.value].name;
    if (graph_.is_constant(node.inputs[1])) return "the ids of " + lookup.path + " are constants";
    const int readers = reader_device(node.outputs[0]);
    if (readers == host) return "what " + lookup.path + " looks up is read on cpu";
    if (readers < 0 || (device >= 0 && readers != device))
      return "what is looked up is read on more than one device";
    device = readers;
    if (const auto refused = refusal(item, device)) return *refused;
  }
  if (const auto refused = update_refusal(p, device)) return *refused;
  return "";
}

void PolicyResolver::finish_caches() {
  std::vector<CacheRequest> constraints;
  std::vector<std::size_t> owners;
  for (std::size_t p = 0; p < result_.parameters.size(); ++p) {
    ParameterAttributes& to = result_.parameters[p];
    if (to.cache.reason.rule < 0 || !errors_.empty()) continue;
    int device = -1;
    to.cached.off = cache_obstacle(p, device);
    if (!to.cached.off.empty()) continue;
    constraints.push_back({to.name, to.cache.value, device});
    owners.push_back(p);
  }
  if (constraints != facts_.constraints) {
    result_.questions.constraints = std::move(constraints);
    return;
  }
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    ParameterAttributes& to = result_.parameters[owners[i]];
    to.cached = facts_.caches[i];
    to.cached.device = constraints[i].device;
    if (!to.cached.rows) continue;
    to.cache.reason.text +=
        fmt::format(": {} rows on {} for {:.1f}% of the ids", to.cached.rows->size(),
                    names_.devices()[to.cached.device].name, 100 * to.cached.hit_rate);
  }
}

void PolicyResolver::note_missing_caches() {
  std::map<int, bool> looked_up;  // by rule: whether it covers any table with lookups
  for (std::size_t p = 0; p < result_.parameters.size(); ++p) {
    const ParameterAttributes& parameter = result_.parameters[p];
    const int rule = parameter.cache.reason.rule;
    if (rule < 0) continue;
    const ValueId table = graph_.states[items_.parameters[p].state].initial;
    const bool any = std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                                 [&](const Node& node) { return is_lookup(node, table); });
    looked_up[rule] = looked_up[rule] || any;
    if (!any || parameter.cached.off.empty()) continue;
    const PolicyRule& by = policy_.rules[rule];
    const std::string& path = parameter.path.empty() ? parameter.name : parameter.path;
    result_.notes.push_back(
        at(by.where_of("cache"), by.at.text(), path + " has no cache: " + parameter.cached.off));
  }
  for (const auto& [rule, any] : looked_up) {
    if (any) continue;
    const PolicyRule& by = policy_.rules[rule];
    result_.notes.push_back(
        at(by.where_of("cache"), by.at.text(), "there is no cache: this covers no table"));
  }
}

}  // namespace tandem
