// What crosses between devices in a step: from a compiled program to plain rows for reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/lower/lowered.h"
#include "engine/plan/simulate.h"
#include "placement/resolve.h"

namespace tandem {

/// A copy between devices.
struct Crossing {
  NodeId node;
  std::size_t bytes = 0;  // of `rows`: the most
  int from = 0, to = 0;   // devices
  std::string value;      // what is copied
  std::string producer;   // path of the operator, name of the input or parameter
  Phase phase = Phase::forward;
  std::vector<std::string> consumers;         // paths of operators; "output loss"
  double exposed_ms = 0;                      // of its own time computing queues wait that long
  std::int64_t times = 1;                     // a step
  bool rows = false;                          // of a table, or of its gradient: those that occur
  bool ahead = false;                         // for the next step, in which they cross no more
  std::string table;                          // whose rows they are: the parameter's name
  std::optional<std::size_t> expected_bytes;  // of `rows`, where the data tells how many occur

  /// A loss, a rate, a norm: its cost is that of any copy, its bytes mean nothing.
  bool scalar() const { return bytes < 16; }
  bool hidden() const { return exposed_ms < 1e-6; }
};

/// In the order of the plan. `simulation` null: exposed times are left at 0. `imported`: names the
/// operator that makes a value where lowering has merged it with others.
std::vector<Crossing> crossings_of(const Lowered& lowered, const Plan& plan,
                                   const Simulation* simulation = nullptr,
                                   const Graph* imported = nullptr);

/// Says how many bytes the rows of tables will be that were counted in data.
void expect_rows(std::vector<Crossing>& crossings, const ResolvedPolicy& resolved);

/// Copies, those of scalars apart. A row of a table that crosses a step ahead is counted in its own
/// step alone.
struct Traffic {
  std::int64_t copies = 0, scalar_copies = 0;
  std::size_t bytes = 0, scalar_bytes = 0;
  bool rows = false;               // `bytes` is the most
  std::size_t expected_bytes = 0;  // with the rows of tables that were counted, others at most
  bool counted = false;            // some were
};
Traffic traffic_of(const std::vector<Crossing>& crossings);

/// An operator that only gives its input another shape, and is placed where neither its producer
/// nor its readers are.
struct IdleView {
  std::string path;
  int device = 0, neighbours = 0;  // where it is; where all around it is
  std::size_t bytes = 0;           // a step, in and out
};
std::vector<IdleView> idle_views(const Lowered& lowered, const std::vector<Crossing>& crossings);

}  // namespace tandem
