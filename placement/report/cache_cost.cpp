#include "placement/report/cache_cost.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/formats/count_text.h"
#include "engine/operators/operator.h"
#include "engine/passes/tables/cached_tables.h"

namespace tandem {
namespace {

/// Whether a node works on a table itself, on the table's cache, or on something else.
enum class WorkOf : std::uint8_t { other, table, cache };

WorkOf work_of(const Node& node, const ParameterAttributes& table) {
  const std::string mark = cached_name("");
  const bool of_cache = node.path.ends_with(mark);
  const std::string path =
      of_cache ? node.path.substr(0, node.path.size() - mark.size()) : node.path;
  const auto reads = [&](const std::string& name) {
    return std::find(table.readers.begin(), table.readers.end(), name) != table.readers.end();
  };
  // A bag has the origins of several operators.
  const bool own = reads(path) || path == "optimizer." + table.name ||
                   std::any_of(node.origins.begin(), node.origins.end(), reads);
  if (!own) return WorkOf::other;
  return of_cache || node.op->role == Role::id_split ? WorkOf::cache : WorkOf::table;
}

CacheCost& entry_of(std::vector<CacheCost>& costs, int rule) {
  const auto known = std::find_if(costs.begin(), costs.end(),
                                  [&](const CacheCost& cost) { return cost.rule == rule; });
  if (known != costs.end()) return *known;
  costs.push_back({.rule = rule});
  return costs.back();
}

}  // namespace

void add_cache_costs(const ResolvedPolicy& resolved, const Lowered& lowered, const Plan& plan,
                     const std::vector<DeviceProfile>& profiles, std::int64_t times,
                     std::vector<CacheCost>& costs) {
  const bool is_first = costs.empty();
  const auto runs = static_cast<double>(times);
  for (const ParameterAttributes& table : resolved.parameters) {
    if (!table.cached.rows) continue;
    CacheCost& cost = entry_of(costs, table.cache.reason.rule);
    if (is_first) ++cost.tables;
    const TableTraffic& traffic = table.traffic;
    const std::int64_t crossing =
        table.ship.value == Ship::rows ? traffic.bytes_rows : traffic.bytes_results;
    const double bytes = static_cast<double>(traffic.bytes_uncached - crossing);
    const double link =
        bytes / profiles[static_cast<std::size_t>(table.cached.device)].link_bandwidth;
    (link < 0 ? cost.costs : cost.saves) += runs * std::abs(link);
    cost.sends_results |= table.ship.value == Ship::results;
    for (const Queue& queue : plan.queues) {
      const DeviceProfile& profile = profiles[static_cast<std::size_t>(queue.device)];
      for (const Instruction& instruction : queue.instructions) {
        if (instruction.kind != Instruction::Kind::run) continue;
        const WorkOf of = work_of(lowered.graph.node(instruction.node), table);
        if (of == WorkOf::other) continue;
        const double seconds = seconds_of(instruction, lowered, profile);
        if (of == WorkOf::cache) cost.costs += runs * seconds;
        // The kernel's overhead is not saved: it still runs, for the other rows.
        if (of == WorkOf::table && queue.device == 0)
          cost.saves += runs * table.cached.hit_rate * std::max(0.0, seconds - profile.overhead);
      }
    }
  }
}

std::string CacheCost::message() const {
  return fmt::format("the cache of {} costs {:.3f} ms a step by the cost model and saves {:.3f} ms",
                     count_text(tables, "table"), costs * 1e3, saves * 1e3);
}

std::string CacheCost::fix() const {
  return sends_results ? "remove `cache`, or send rows: ship = \"rows\"" : "remove `cache`";
}

std::vector<Diagnostic> cache_warnings(const Policy& policy, const std::vector<CacheCost>& costs) {
  std::vector<Diagnostic> warnings;
  for (const CacheCost& cost : costs) {
    if (cost.pays()) continue;
    const PolicyRule& rule = policy.rules[static_cast<std::size_t>(cost.rule)];
    Diagnostic& d =
        warnings.emplace_back(at(rule.where_of("cache"), rule.at.text(), cost.message()));
    d.fix = cost.fix();
  }
  return warnings;
}

}  // namespace tandem
