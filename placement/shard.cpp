// `shard`: which part of a parameter and of its optimizer's states one of several ranks keeps.
#include <algorithm>
#include <map>

#include "engine/operators/tables/table_nodes.h"
#include "placement/resolver.h"

namespace tandem {
namespace {

constexpr std::string_view whole = "whole", rows = "rows", state = "state";

}  // namespace

std::string_view name_of(std::optional<Sharding> shard) {
  if (!shard) return whole;
  return *shard == Sharding::rows ? rows : state;
}

Shardings shardings_of(const ResolvedPolicy& resolved) {
  Shardings shards;
  for (const ParameterAttributes& parameter : resolved.parameters) {
    if (parameter.shard.value) shards.emplace(parameter.name, *parameter.shard.value);
  }
  return shards;
}

void PolicyResolver::apply_shard(const std::vector<int>& parameters, int r) {
  const PolicyRule& rule = policy_.rules[r];
  if (*rule.shard != whole && *rule.shard != rows && *rule.shard != state) {
    if (parameters.empty()) return;
    Diagnostic d = at(rule.where_of("shard"), rule.at.text(),
                      "`shard = \"" + *rule.shard + "\"` comes with a later version");
    d.fix = "\"rows\" (of tables) and \"state\" work";
    errors_.push_back(std::move(d));
    return;
  }
  std::optional<Sharding> value;
  if (*rule.shard != whole) value = *rule.shard == rows ? Sharding::rows : Sharding::state;
  for (const int p : parameters) {  // statistics are whole on every rank
    ParameterAttributes& to = result_.parameters[p];
    if (to.kind == StateKind::parameter) decide(to.shard, value, r);
  }
}

// Why ranks cannot share out the rows of the parameter, or "".
std::string PolicyResolver::rows_obstacle(std::size_t p) const {
  const ParameterAttributes& parameter = result_.parameters[p];
  const ValueId table = graph_.states[items_.parameters[p].state].initial;
  if (!parameter.table) return "lookups of rows by ids are not all that reads it";
  for (const NamedValue& output : graph_.outputs) {
    if (output.value == table) return "it is an output of the model";
  }
  for (const Node& node : graph_.nodes) {
    if (looks_up_rows(node) && node.inputs[0] == table && graph_.is_constant(node.inputs[1]))
      return "the ids of " + node.path + " are constants";
  }
  return "";
}

void PolicyResolver::finish_shards() {
  struct Covered {
    bool trained = false;
    std::string path;  // of one that is not
  };
  std::map<int, Covered> of_states;  // by deciding rule
  for (std::size_t p = 0; p < result_.parameters.size(); ++p) {
    ParameterAttributes& to = result_.parameters[p];
    if (!to.shard.value) continue;
    const PolicyRule& rule = policy_.rules[to.shard.reason.rule];
    const std::string& path = to.path.empty() ? to.name : to.path;
    to.shard.reason.text += ", where several ranks train";
    if (to.cache.reason.rule >= 0) {
      Diagnostic d = at(rule.where_of("shard"), path,
                        "ranks cannot share out a table of which a device caches rows: both "
                        "together come with a later version");
      d.fix = "leave `cache` or `shard` out";
      errors_.push_back(std::move(d));
      continue;
    }
    if (*to.shard.value == Sharding::state) {
      Covered& covered = of_states[to.shard.reason.rule];
      if (graph_.states[items_.parameters[p].state].trainable) {
        covered.trained = true;
      } else {
        covered.path = path;
        to.shard.value.reset();
        to.shard.reason.text += ": it is not trained";
      }
      continue;
    }
    const std::string obstacle = rows_obstacle(p);
    if (obstacle.empty()) continue;
    Diagnostic d = at(rule.where_of("shard"), path,
                      "ranks cannot share out the rows of this parameter: " + obstacle);
    d.expected = "a table that lookups by ids alone read";
    d.fix = "let the selector leave it out, or add { at = \"" + path + "\", shard = \"" +
            (to.table ? "whole" : "state") + "\" } behind it";
    errors_.push_back(std::move(d));
  }
  for (const auto& [r, covered] : of_states) {
    if (covered.trained) continue;
    const PolicyRule& rule = policy_.rules[r];
    Diagnostic d = at(rule.where_of("shard"), covered.path,
                      "there is no optimizer's state to share out: this is not trained");
    d.expected = "a parameter that is trained";
    d.fix = "leave `shard` out";
    errors_.push_back(std::move(d));
  }
}

}  // namespace tandem
