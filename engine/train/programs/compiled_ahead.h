// Programs that a run needs only later, compiled without memory: before its first step the run
// learns what would be refused, whether all fits, and how much memory it holds.
#pragma once

#include "engine/runtime/run_memory.h"
#include "engine/train/programs/freeze_rules.h"
#include "engine/train/steps/micro_batch_programs.h"

namespace tandem {

class CompiledAhead {
 public:
  /// For a run whose first programs have their memory already, and states in `states`.
  CompiledAhead(const RunParts& parts, const StateStore& states);

  /// Counts a program that exists already: only for the first phase, or to the end of the run.
  void has_of_phase(const BoundProgram& bound);
  void has(const BoundProgram& bound);

  /// From here on, `add` adds programs of the next phase.
  void begin_phase() { memory_.begin_phase(); }
  /// Throws what making the program would throw. `parts`: those of this program.
  void add(const Graph& graph, const RunParts& parts);
  /// Throws where the programs of the run so far do not fit together.
  void check_fit() const;
  /// Per device: what the programs of the run so far hold together.
  std::vector<MemoryUse> memory() const { return memory_.uses(); }

 private:
  const RunParts& parts_;
  StateLayouts layouts_;
  RunMemory memory_;
};

}  // namespace tandem
