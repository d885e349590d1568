// Times of operators with the bytes, operations and table rows that they process.
#include "api/timing/operator_times.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/operators/grouped_update.h"
#include "placement/report/placement_report.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

constexpr double cached_bytes = 64e6;

bool is_host_update(const OperatorTime& time) {
  const Node& node = time.operation();
  return time.on_host() && node.phase == tandem::Phase::update && !aliases_of(node).empty() &&
         node.op->name != "Accumulate";
}

}  // namespace

Cost OperatorTime::cost() const {
  Cost cost = cost_of(lowered().graph, operation());
  if (table) cost.bytes = table->bytes;
  cost.bytes *= times;
  cost.flops *= times;
  return cost;
}

Program::Probe timing_probe(std::function<void(NodeId, ProbeTime, ProbeTime)> tell) {
  return [tell = std::move(tell), begin = ProbeTime()](NodeId node, bool is_begin) mutable {
    const ProbeTime now = std::chrono::steady_clock::now();
    if (is_begin) {
      begin = now;
    } else if (node) {
      tell(node, begin, now);
    }
  };
}

std::vector<OperatorTime> operator_times(const TracedSteps& traced,
                                         const std::vector<std::vector<double>>& node_seconds,
                                         const TableCounter& tables) {
  std::vector<OperatorTime> times;
  for (std::size_t p = 0; p < node_seconds.size(); ++p) {
    const TracedProgram& program = traced.programs()[p];
    for (std::size_t i = 0; i < node_seconds[p].size(); ++i) {
      if (program.program->lowered().nodes[i].kernel == nullptr) continue;
      const NodeId node{static_cast<std::int32_t>(i)};
      times.push_back({program.program, program.times, i, node_seconds[p][i] * 1e3 / traced.steps(),
                       tables.use(*program.program, node)});
    }
  }
  std::sort(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.ms > b.ms; });
  return times;
}

HostUpdates host_updates(const std::vector<OperatorTime>& operators) {
  HostUpdates updates;
  for (const OperatorTime& time : operators) {
    if (!is_host_update(time)) continue;
    updates.ms += time.ms;
    updates.bytes += time.cost().bytes;
  }
  return updates;
}

bool is_memory_bound(const std::vector<OperatorTime>& operators) {
  double bytes = 0;
  for (const OperatorTime& time : operators) {
    if (is_host_update(time) || (time.table && time.on_host())) bytes += time.cost().bytes;
  }
  return bytes >= cached_bytes;
}

Json operator_json(const OperatorTime& time, double bandwidth) {
  const Lowered& lowered = time.lowered();
  const Node& node = time.operation();
  const Cost cost = time.cost();
  Json json{{"path", node.path},
            {"op", node.op->name},
            {"phase", phase_name(node.phase)},
            {"device", lowered.devices[lowered.nodes[time.node].device]->name()},
            {"kernel", time.kernel().name},
            {"ms", time.ms},
            {"bytes", cost.bytes},
            {"flops", cost.flops}};
  if (!time.table) return json;
  json["ids"] = std::llround(time.table->ids);
  json["unique"] = std::llround(time.table->unique);
  json["dedup"] = time.table->dedup();
  if (time.table->cached >= 0) json["hit_rate"] = time.table->hit_rate();
  json["gbs"] = time.gb_s();
  if (bandwidth > 0 && time.on_host()) json["of_bandwidth"] = time.gb_s() / bandwidth;
  return json;
}

std::string operators_text(const std::vector<OperatorTime>& operators, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < operators.size() && i < most; ++i) {
    const OperatorTime& time = operators[i];
    const Node& node = time.operation();
    text += fmt::format("  {:9.3f} ms {:7.1f} GF/s {:6.1f} GB/s  {:<22} {:<28} {} {}\n", time.ms,
                        time.ms > 0 ? time.cost().flops / time.ms / 1e6 : 0, time.gb_s(),
                        node.op->name, time.kernel().name, node.path,
                        node.phase == tandem::Phase::backward ? "(backward)" : "");
  }
  return text;
}

std::string tables_text(const std::vector<OperatorTime>& operators, double bandwidth) {
  std::string rows;
  for (const OperatorTime& time : operators) {
    if (!time.table) continue;
    const std::string share = bandwidth > 0 && time.on_host()
                                  ? fmt::format("{:.0f}%", 100 * time.gb_s() / bandwidth)
                                  : "-";
    const Lowered& lowered = time.lowered();
    rows += fmt::format(
        "  {:9.3f} ms {:6.1f} GB/s {:>5} {:>10} {:>10} {:>8.2f}  {:<14} {:<8} {}\n", time.ms,
        time.gb_s(), share, std::llround(time.table->ids), std::llround(time.table->unique),
        time.table->dedup(), time.operation().op->name,
        lowered.devices[lowered.nodes[time.node].device]->name(), time.operation().path);
    if (time.table->cached < 0) continue;
    rows.insert(rows.size() - 1, fmt::format(", {:.1f}% cached", 100 * time.table->hit_rate()));
  }
  if (rows.empty()) return rows;
  const std::string limit =
      bandwidth > 0 ? fmt::format(", % of in-place updates' {:.1f} GB/s", bandwidth) : "";
  return fmt::format("tables, by time; GB/s for the rows that occur{}\n", limit) +
         fmt::format("  {:>12} {:>11} {:>5} {:>10} {:>10} {:>8}\n", "a step", "", "", "ids", "rows",
                     "ids/row") +
         rows;
}

}  // namespace tandem::api
