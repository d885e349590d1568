// `shard`: which part of a parameter and of its optimizer's states one of several ranks keeps.
#include <algorithm>
#include <map>

#include "engine/operators/attention_weights.h"
#include "engine/operators/product_weights.h"
#include "engine/operators/tables/table_nodes.h"
#include "placement/resolver.h"

namespace tandem {
namespace {

constexpr std::string_view whole = "whole";
constexpr Sharding shardings[] = {Sharding::rows,  Sharding::columns, Sharding::state,
                                  Sharding::table, Sharding::heads,   Sharding::state_and_gradient};

// The words for what a rule shards, in a message.
std::string refused_shard(Sharding sharding) {
  if (sharding == Sharding::table) return "this parameter cannot be on one rank as a whole table";
  return "the " + std::string(name_of(sharding)) +
         " of this parameter cannot be sharded over the ranks";
}

std::string_view expected_by(Sharding sharding) {
  switch (sharding) {
    case Sharding::table:
      return "a table that only lookups by ids read";
    case Sharding::heads:
      return "a matrix whose products make queries, keys or values of attention, or read its "
             "result";
    default:
      return "a table that only lookups by ids read, or a matrix that products read";
  }
}

}  // namespace

std::string_view name_of(std::optional<Sharding> shard) { return shard ? name_of(*shard) : whole; }

Shardings shardings_of(const ResolvedPolicy& resolved) {
  Shardings shards;
  for (const ParameterAttributes& parameter : resolved.parameters) {
    if (parameter.shard.value) shards.emplace(parameter.name, *parameter.shard.value);
  }
  return shards;
}

void PolicyResolver::apply_shard(const std::vector<int>& parameters, int r) {
  const PolicyRule& rule = policy_.rules[r];
  std::optional<Sharding> value;
  for (const Sharding sharding : shardings) {
    if (*rule.shard == name_of(sharding)) value = sharding;
  }
  for (const int p : parameters) {  // statistics are whole on every rank
    ParameterAttributes& to = result_.parameters[p];
    if (to.kind == StateKind::parameter) decide(to.shard, value, r);
  }
}

// Why the values of the parameter cannot be sharded as its rule asks, or "".
std::string PolicyResolver::shard_obstacle(std::size_t p) const {
  const ParameterAttributes& parameter = result_.parameters[p];
  const ValueId matrix = graph_.states[items_.parameters[p].state].initial;
  const std::optional<Sharding> sharding = parameter.shard.value;
  if (sharding == Sharding::heads) return attention_weight(graph_, matrix).obstacle;
  if (!parameter.table) {
    if (sharding == Sharding::table) return "it is no table that only lookups by ids read";
    return product_weight_obstacle(graph_, matrix);
  }
  if (sharding == Sharding::columns && graph_.type(matrix).rank() != 2) return "it is no matrix";
  for (const NamedValue& output : graph_.outputs) {
    if (output.value == matrix) return "it is an output of the model";
  }
  for (const Node& node : graph_.nodes) {
    if (looks_up_rows(node) && node.inputs[0] == matrix && graph_.is_constant(node.inputs[1]))
      return "the ids of " + node.path + " are constants";
  }
  return "";
}

// Whether it is a bias, or another vector, whose rule also covers a matrix that can be sharded.
bool PolicyResolver::is_beside_a_matrix(std::size_t p) const {
  const ParameterAttributes& bias = result_.parameters[p];
  if (graph_.type(graph_.states[items_.parameters[p].state].initial).rank() > 1) return false;
  for (std::size_t other = 0; other < result_.parameters.size(); ++other) {
    const ParameterAttributes& matrix = result_.parameters[other];
    if (other != p && !matrix.table && matrix.shard.value == bias.shard.value &&
        matrix.shard.reason.rule == bias.shard.reason.rule && shard_obstacle(other).empty())
      return true;
  }
  return false;
}

void PolicyResolver::finish_shards() {
  struct Covered {
    bool trained = false;
    std::string path;  // that of one that is not trained
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
                        "a table of which a device caches rows cannot be sharded over the ranks: "
                        "this version does not support both together");
      d.fix = "leave `cache` or `shard` out";
      errors_.push_back(std::move(d));
      continue;
    }
    if (keeps_parameter_whole(*to.shard.value)) {
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
    const std::string obstacle = shard_obstacle(p);
    if (obstacle.empty()) continue;
    if (is_beside_a_matrix(p)) {
      to.shard.value.reset();
      to.shard.reason.text += ": whole, each rank adds its part to the result of a product";
      continue;
    }
    Diagnostic d =
        at(rule.where_of("shard"), path, refused_shard(*to.shard.value) + ": " + obstacle);
    d.expected = expected_by(*to.shard.value);
    d.fix = "let the selector leave it out, or add { at = \"" + path + "\", shard = \"" +
            (to.table ? "whole" : "state") + "\" } after it";
    errors_.push_back(std::move(d));
  }
  for (const auto& [r, covered] : of_states) {
    if (covered.trained) continue;
    const PolicyRule& rule = policy_.rules[r];
    Diagnostic d = at(rule.where_of("shard"), covered.path,
                      "there is no optimizer's state to shard: this is not trained");
    d.expected = "a parameter that is trained";
    d.fix = "leave `shard` out";
    errors_.push_back(std::move(d));
  }
}

}  // namespace tandem
