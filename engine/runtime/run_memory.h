// The memory that all programs of a run hold: a run makes one program for each size and position of
// a micro-batch, and keeps all of them until other parameters train.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/runtime/compile.h"

namespace tandem {

/// Layouts by name of a state: programs after the one that made a state have to accept its layout.
using StateLayouts = std::vector<std::pair<std::string, Layout>>;
/// Adds the states of a program that are not there yet.
void add_layouts(const Lowered& lowered, StateLayouts& layouts);

/// Peak = states, each once + the largest arena + constants and slots of every program that is
/// there at a time. States and arenas stay to the end of the run.
class RunMemory {
 public:
  /// A program that stays to the end.
  void add(const Lowered& lowered, const Plan& plan) { add(lowered, plan, &OnDevice::own); }
  void add(const CompiledProgram& program) { add(program.lowered, program.plan); }
  /// A program that is dropped where the next phase begins.
  void add_of_phase(const Lowered& lowered, const Plan& plan) {
    add(lowered, plan, &OnDevice::of_phase);
  }
  void begin_phase();
  /// Per device: the parts of the program with the highest peak, the most parameters and optimizer
  /// states of one program, and the peak of all together.
  std::vector<MemoryUse> uses() const;
  /// A plan that takes as much memory.
  Plan as_plan() const;

 private:
  struct OnDevice {
    MemoryUse highest;
    std::size_t states = 0, arena = 0, own = 0, of_phase = 0, peak = 0;
    std::size_t parameters = 0, state = 0;
  };
  void add(const Lowered& lowered, const Plan& plan, std::size_t OnDevice::*own);

  std::vector<OnDevice> devices_;
  std::set<std::string> states_;  // by name, those that are counted
};

}  // namespace tandem
