// What ranks exchange in a step: from a compiled program to plain rows for reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/plan/simulate.h"
#include "engine/runtime/compile.h"

namespace tandem {

struct PlannedExchange {
  std::string op;    // "AllReduce"
  std::string path;  // the operator's or bucket's
  std::string algorithm;
  int device = 0;  // the one whose communicator is used
  Phase phase = Phase::update;
  std::size_t operands = 0;  // gradients that travel together
  std::size_t bytes = 0;     // its operands on one rank
  double seconds = 0;        // by the cost model
  double exposed = 0;        // seconds that computing queues wait for it
  std::int64_t times = 1;    // in a step
};

/// In the order of the plan; nothing for one rank.
std::vector<PlannedExchange> exchanges_of(const CompiledProgram& program,
                                          const Simulation& simulation);

}  // namespace tandem
