#include "placement/auto/shardings.h"

#include <algorithm>

#include "engine/operators/attention_weights.h"
#include "engine/operators/product_weights.h"
#include "placement/quantities.h"
#include "placement/selectors/siblings.h"

namespace tandem {
namespace {

// Tables with less than this part of all tables' bytes may stay whole.
constexpr double small_part = 0.1;
// Smaller states are not sharded (StateShards::least_bytes).
constexpr std::uint64_t least_state = 4096;
// Which part of the bytes of all parameters but tables a matrix must have to be worth a split.
constexpr double large_part = 0.25;

using Parameters = std::vector<const ParameterAttributes*>;

const std::string& name_of(const ParameterAttributes& parameter) {
  return parameter.path.empty() ? parameter.name : parameter.path;
}

PolicyRule rule_of(const ParameterAttributes& parameter, const std::string& shard) {
  PolicyRule rule;
  rule.at = Selector(selector_part(name_of(parameter)));
  rule.shard = shard;
  return rule;
}

// A rule for each of the parameters.
PolicyRules rules_of(const Parameters& parameters, const std::string& shard) {
  PolicyRules rules;
  for (const ParameterAttributes* parameter : parameters)
    rules.push_back(rule_of(*parameter, shard));
  return rules;
}

PolicyRules joined(PolicyRules rules, const PolicyRules& more) {
  rules.insert(rules.end(), more.begin(), more.end());
  return rules;
}

// "columns" or "rows": the split of a matrix that also splits its products' results; "" where it
// cannot be sharded.
std::string split_of(const Graph& graph, const ParameterAttributes& parameter) {
  const State* state = graph.find_state(parameter.name);
  if (state == nullptr || !product_weight_obstacle(graph, state->initial).empty()) return "";
  for (const Node& node : graph.nodes) {
    const ProductWeight weight = product_weight(graph, node);
    if (weight.matrix == state->initial) return weight.transposed ? "rows" : "columns";
  }
  return "";
}

// Shards the large matrices of products, each so that its products' results are split.
ShardWay split_way(const Graph& graph, const Parameters& others) {
  std::size_t all = 0, bytes = 0;
  for (const ParameterAttributes* parameter : others) all += parameter->bytes;
  ShardWay way;
  std::string names;
  for (const ParameterAttributes* parameter : others) {
    if (static_cast<double>(parameter->bytes) < large_part * static_cast<double>(all)) continue;
    const std::string word = split_of(graph, *parameter);
    if (word.empty()) continue;
    way.rules.push_back(rule_of(*parameter, word));
    names += (names.empty() ? "" : " and ") + name_of(*parameter);
    bytes += parameter->bytes;
  }
  way.name = "data parallel body, split " + names;
  way.why = "gradients of " + bytes_text(bytes) + " are not summed over ranks: samples go to " +
            names + " instead";
  return way;
}

// Shards the matrices before and after attention, each by whole heads.
ShardWay heads_way(const Graph& graph, const Parameters& others) {
  Parameters beside;
  std::size_t bytes = 0;
  for (const ParameterAttributes* parameter : others) {
    const State* state = graph.find_state(parameter->name);
    if (state == nullptr || !attention_weight(graph, state->initial).obstacle.empty()) continue;
    beside.push_back(parameter);
    bytes += parameter->bytes;
  }
  return {"data parallel body, attention by heads", rules_of(beside, "heads"),
          "gradients of " + bytes_text(bytes) +
              " are not summed over ranks: samples go to the heads instead"};
}

// Shards large tables of several columns by columns, which loads ranks alike whichever rows are
// frequent; the other tables by rows. No rules where no table is by columns.
ShardWay columns_way(const Graph& graph, const Parameters& tables, const Parameters& large) {
  ShardWay way;
  std::size_t count = 0;
  for (const ParameterAttributes* table : tables) {
    const State* state = graph.find_state(table->name);
    const bool is_large = std::find(large.begin(), large.end(), table) != large.end();
    const Shape shape = state != nullptr ? graph.type(state->initial).shape : Shape{};
    const bool by_columns = is_large && shape.size() == 2 && shape[1] > 1;
    way.rules.push_back(rule_of(*table, by_columns ? "columns" : "rows"));
    count += by_columns;
  }
  if (count == 0) return {};
  way.name = count == tables.size() ? "data parallel, tables by columns"
                                    : "data parallel, large tables by columns, the others by rows";
  return way;
}

}  // namespace

std::vector<ShardWay> shard_ways(const ResolvedPolicy& resolved, const Graph& graph) {
  Parameters tables, others;
  std::size_t bytes = 0;
  for (const ParameterAttributes& parameter : resolved.parameters) {
    if (parameter.kind != StateKind::parameter || parameter.shard.reason.rule >= 0) continue;
    if (parameter.cache.reason.rule >= 0) continue;
    (parameter.table ? tables : others).push_back(&parameter);
    if (parameter.table) bytes += parameter.bytes;
  }
  Parameters large;
  std::copy_if(tables.begin(), tables.end(), std::back_inserter(large), [&](const auto* table) {
    return static_cast<double>(table->bytes) >= small_part * static_cast<double>(bytes);
  });
  const auto of_all = [](const char* shard) {
    PolicyRule rule;
    rule.min = least_state;
    rule.shard = shard;
    return PolicyRules{rule};
  };
  const PolicyRules states = of_all("state");
  // Tables have optimizers of their own, whose states follow the tables' rows.
  const PolicyRules by_rows = rules_of(tables, "rows"), whole = rules_of(tables, "whole");
  std::vector<ShardWay> ways{{"data parallel", {}}};
  if (!others.empty()) {
    ways.push_back({"data parallel, sharded optimizer states", joined(states, whole)});
    // For cases where whole gradients do not fit; it is no faster.
    ways.push_back({"data parallel, sharded optimizer states and gradients",
                    joined(of_all("state+gradient"), whole)});
  }
  if (!tables.empty()) ways.push_back({"data parallel, tables by rows", by_rows});
  if (large.size() < tables.size())
    ways.push_back({"data parallel, large tables by rows", rules_of(large, "rows")});
  if (tables.size() > 1)
    ways.push_back({"data parallel, whole tables with one rank each", rules_of(tables, "table")});
  if (const ShardWay by_columns = columns_way(graph, tables, large); !by_columns.rules.empty())
    ways.push_back(by_columns);
  if (!tables.empty() && !others.empty())
    ways.push_back(
        {"data parallel, tables by rows and sharded optimizer states", joined(states, by_rows)});
  for (const ShardWay& split : {split_way(graph, others), heads_way(graph, others)}) {
    if (split.rules.empty()) continue;
    ways.push_back(split);
    ways.push_back({split.name + ", sharded optimizer states",
                    joined(joined(states, whole), split.rules), split.why});
    if (!tables.empty())
      ways.push_back({split.name + ", tables by rows", joined(by_rows, split.rules), split.why});
  }
  return ways;
}

}  // namespace tandem
