// What each operator of a step took and moved, as objects and as tables for people.
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
#include "engine/training/tables/table_log.h"

namespace tandem::api {

/// A node of a program, in all its runs in a step.
struct OperatorTime {
  const Program* program = nullptr;
  int times = 1;  // a step
  std::size_t node = 0;
  double ms = 0;  // a step
  std::optional<TableUse>
      table;  // of a micro-batch, where it works on rows of a table with known ids

  const Lowered& lowered() const { return program->lowered(); }
  const Node& operation() const { return lowered().graph.nodes[node]; }
  const Kernel& kernel() const { return *lowered().nodes[node].kernel; }
  bool on_host() const { return lowered().nodes[node].device == 0; }
  Cost cost() const;  // of a step; bytes for the rows that occurred
  double gb_s() const { return ms > 0 ? cost().bytes / ms / 1e6 : 0; }
};

using ProbeTime = std::chrono::steady_clock::time_point;

/// A probe that tells when a program's nodes began and ended.
Program::Probe timing_probe(std::function<void(NodeId node, ProbeTime begin, ProbeTime end)> tell);

/// `node_seconds`: per program and node, sums over all steps. Longest first, without views and
/// copies.
std::vector<OperatorTime> operator_times(const TracedSteps& traced,
                                         const std::vector<std::vector<double>>& node_seconds,
                                         const TableCounter& tables);

/// Optimizer updates on the host: what they move, in what time.
struct HostUpdates {
  double ms = 0, bytes = 0;
  double gb_s() const { return ms > 0 ? bytes / ms / 1e6 : 0; }
};
HostUpdates host_updates(const std::vector<OperatorTime>& operators);

/// Whether what updates and tables on the host move in a step is too much for caches: below, they
/// make any figure.
bool is_memory_bound(const std::vector<OperatorTime>& operators);

/// A row of `operators` of `tandem bench --json`. `bandwidth`: GB/s of this machine, 0 = unknown.
nlohmann::ordered_json operator_json(const OperatorTime& time, double bandwidth);

/// The first `most` of them, a line each.
std::string operators_text(const std::vector<OperatorTime>& operators, std::size_t most);

/// Lookups, groupings of ids and updates of rows, a line each; "" where there are none.
std::string tables_text(const std::vector<OperatorTime>& operators, double bandwidth);

}  // namespace tandem::api
