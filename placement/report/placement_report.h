// Where the nodes and states of a compiled program are, and why: placement.json and the lines that
// a run prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/lower/lowered.h"
#include "engine/plan/crossings.h"
#include "engine/plan/plan.h"
#include "placement/run_policy.h"

namespace tandem {

/// Sets `expected_bytes` of copies of table rows, for tables whose rows were counted in the data.
void expect_rows(std::vector<Crossing>& crossings, const ResolvedPolicy& resolved);

/// A node of the lowered graph.
struct PlacedRow {
  NodeId node;
  std::string path, op, kernel;  // kernel: "view", "copy" where it has none
  Phase phase = Phase::forward;
  int device = 0;                    // where it is
  std::string reason;                // "policy.toml:4"
  std::vector<std::string> results;  // names of its values
};
std::vector<PlacedRow> placed_rows(const Lowered& lowered, const ResolvedPolicy& resolved);

/// An attribute that a rule with need = "prefer" asked for and did not get.
struct FallenRow {
  std::string path, attribute;    // operator or parameter; "run", "param", "state"
  std::string requested, actual;  // devices
  std::string rule, reason;       // "policy.toml:4", "Conv: cuda.conv: takes no float64"
};
std::vector<FallenRow> fallen_rows(const Policy& policy, const ResolvedPolicy& resolved);

const char* phase_name(Phase phase);

/// A line for each table whose lookups cross: how they cross, and the bytes of both ways to ship.
std::vector<std::string> table_lines(const ResolvedPolicy& resolved);

/// placement.json of a run directory: devices, nodes, states and tables with their reasons.
std::string placement_json(const Lowered& lowered, const RunPolicy& policy,
                           const ResolvedPolicy& resolved);
/// "placement: gpu 188 operators 1.2 GiB | cpu 10 operators 0.4 GiB | 4 crossings, 8.6 MiB/step |
/// policy policy.toml". `memory`: per device; `crossings`: those of a step.
std::string placement_line(const std::vector<MemoryUse>& memory,
                           const std::vector<Crossing>& crossings, const Policy& policy,
                           const ResolvedPolicy& resolved);
/// One line a device: parameters, state, gradients, activations, workspace, peak.
std::string memory_text(const std::vector<MemoryUse>& memory, const ResolvedPolicy& resolved);

}  // namespace tandem
