#include "placement/auto/shardings.h"

#include <algorithm>

#include "placement/auto/groups.h"
#include "placement/toml_text.h"

namespace tandem {
namespace {

// Tables with less than this part of all tables' bytes may stay whole.
constexpr double small_part = 0.1;
// A collective of its own costs the latency of a few messages: smaller states stay whole.
constexpr const char* least_state = "64KiB";

using Parameters = std::vector<const ParameterAttributes*>;

// A rule for each table: "rows" or "whole".
std::vector<std::string> rules_of(const Parameters& tables, const std::string& shard) {
  std::vector<std::string> rules;
  for (const ParameterAttributes* table : tables) {
    const std::string& name = table->path.empty() ? table->name : table->path;
    rules.push_back("{ at = " + toml_string(selector_part(name)) + ", shard = \"" + shard + "\" }");
  }
  return rules;
}

}  // namespace

std::vector<ShardWay> shard_ways(const ResolvedPolicy& resolved) {
  Parameters tables;
  std::size_t bytes = 0;
  bool others = false;
  for (const ParameterAttributes& parameter : resolved.parameters) {
    if (parameter.kind != StateKind::parameter || parameter.shard.reason.rule >= 0) continue;
    if (parameter.cache.reason.rule >= 0) continue;
    if (parameter.table) {
      tables.push_back(&parameter);
      bytes += parameter.bytes;
    } else {
      others = true;
    }
  }
  Parameters large;
  std::copy_if(tables.begin(), tables.end(), std::back_inserter(large), [&](const auto* table) {
    return static_cast<double>(table->bytes) >= small_part * static_cast<double>(bytes);
  });
  const std::string states =
      std::string("{ at = \"**\", min = \"") + least_state + "\", shard = \"state\" }";
  // Tables have other optimizers, whose states follow their rows.
  const auto with_states = [&](std::vector<std::string> of_tables) {
    of_tables.insert(of_tables.begin(), states);
    return of_tables;
  };
  const std::vector<std::string> by_rows = rules_of(tables, "rows");
  std::vector<ShardWay> ways{{"data parallel", {}}};
  if (others)
    ways.push_back(
        {"data parallel, optimizer states shared out", with_states(rules_of(tables, "whole"))});
  if (!tables.empty()) ways.push_back({"data parallel, tables by rows", by_rows});
  if (large.size() < tables.size())
    ways.push_back({"data parallel, large tables by rows", rules_of(large, "rows")});
  if (!tables.empty() && others)
    ways.push_back(
        {"data parallel, tables by rows and optimizer states shared out", with_states(by_rows)});
  return ways;
}

}  // namespace tandem
