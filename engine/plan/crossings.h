// What crosses between devices in a step: from a compiled program to plain rows for reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/lower/lowered.h"
#include "engine/plan/plan.h"
#include "engine/plan/simulate.h"

namespace tandem {

/// A copy between devices.
struct Crossing {
  NodeId node;
  std::size_t bytes = 0;  // for `rows`: an upper bound
  int from = 0, to = 0;   // devices
  std::string value;      // what is copied
  std::string producer;   // path of the operator, name of the input or parameter
  Phase phase = Phase::forward;
  std::vector<std::string> consumers;         // paths of operators; "output loss"
  double exposed = 0;                         // seconds that computing queues wait for it
  std::int64_t times = 1;                     // in a step
  bool rows = false;                          // only rows that occur, of a table or its gradient
  bool ahead = false;                         // rows for the next step, where they cross no more
  std::string table;                          // the parameter whose rows they are
  std::optional<std::size_t> expected_bytes;  // for `rows`, where they were counted in the data

  /// A loss, a rate, a norm: its cost is that of any copy, its bytes mean nothing.
  bool scalar() const { return bytes < 16; }
  bool hidden() const { return exposed < 1e-9; }
  /// How many times its bytes count in a step: rows that are copied a step ahead count where the
  /// step uses them.
  std::int64_t counted_times() const { return ahead ? 0 : times; }
};

/// In the order of the plan. `simulation` null: exposed times are left at 0. `imported`: names the
/// operator that makes a value where lowering has merged it with others.
std::vector<Crossing> crossings_of(const Lowered& lowered, const Plan& plan,
                                   const Simulation* simulation = nullptr,
                                   const Graph* imported = nullptr);

/// Counts and bytes of copies, with scalars counted separately. The bytes of a table's row that is
/// copied a step ahead count only in the step that uses it.
struct Traffic {
  std::int64_t copies = 0, scalar_copies = 0;
  std::size_t bytes = 0, scalar_bytes = 0;
  bool rows = false;               // `bytes` is an upper bound
  std::size_t expected_bytes = 0;  // by the rows counted in the data; upper bound for other tables
  bool counted = false;            // the rows of some table were counted
};
Traffic traffic_of(const std::vector<Crossing>& crossings);

/// An operator that only gives its input another shape, and is placed where neither its producer
/// nor its readers are.
struct IdleView {
  std::string path;
  int device = 0, neighbours = 0;  // its own; that of all its neighbours
  std::size_t bytes = 0;           // in a step, in and out
};
std::vector<IdleView> idle_views(const Lowered& lowered, const std::vector<Crossing>& crossings);

}  // namespace tandem
