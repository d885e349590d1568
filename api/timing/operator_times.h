// Times and moved bytes of each operator of a step, as objects and as tables for people.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/model/engine.h"
#include "api/timing/mixed_runs.h"
#include "engine/operators/operator.h"
#include "engine/train/tables/table_log.h"

namespace tandem::api {

/// A node of a program, summed over all its runs in a step.
struct OperatorTime {
  const Program* program = nullptr;
  int times = 1;  // runs per step
  std::size_t node = 0;
  double ms = 0;  // per step
  std::optional<TableUse>
      table;  // rows of a micro-batch, where it works on rows of a table with known ids

  const Lowered& lowered() const { return program->lowered(); }
  const Node& operation() const { return lowered().graph.nodes[node]; }
  const Kernel& kernel() const { return *lowered().nodes[node].kernel; }
  bool on_host() const { return lowered().nodes[node].device == 0; }
  Cost cost() const;  // cost of a step; bytes of the rows that occurred
  double gb_s() const { return ms > 0 ? cost().bytes / ms / 1e6 : 0; }
};

using ProbeTime = std::chrono::steady_clock::time_point;

/// A probe that reports when a program's nodes began and ended.
Program::Probe timing_probe(std::function<void(NodeId node, ProbeTime begin, ProbeTime end)> tell);

/// `node_seconds`: by program and node, summed over all steps. Longest first, without views and
/// copies.
std::vector<OperatorTime> operator_times(const TracedSteps& traced,
                                         const std::vector<std::vector<double>>& node_seconds,
                                         const TableCounter& tables);

/// Optimizer updates on the host: bytes moved and time taken.
struct HostUpdates {
  double ms = 0, bytes = 0;
  double gb_s() const { return ms > 0 ? bytes / ms / 1e6 : 0; }
};
HostUpdates host_updates(const std::vector<OperatorTime>& operators);

/// Whether updates and tables on the host move too many bytes in a step for caches to hold; below
/// that, caches can produce any rate.
bool is_memory_bound(const std::vector<OperatorTime>& operators);

/// A row of `operators` of `tandem bench --json`. `bandwidth`: GB/s of this machine, 0 = unknown.
nlohmann::ordered_json operator_json(const OperatorTime& time, double bandwidth);

/// The first `most` of them, one per line.
std::string operators_text(const std::vector<OperatorTime>& operators, std::size_t most);

/// Lookups, groupings of ids and updates of rows, one per line; "" where there are none.
std::string tables_text(const std::vector<OperatorTime>& operators, double bandwidth);

}  // namespace tandem::api
