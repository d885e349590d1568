// What the programs of a run hold together: a run makes one for each size and place of a
// micro-batch, and keeps all of them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/runtime/compile.h"

namespace tandem {

/// Peak = states, each once + the largest arena + constants and slots of every program.
class RunMemory {
 public:
  void add(const CompiledProgram& program);
  /// Per device: the parts of the program with the highest peak, the most parameters and optimizer
  /// states of one program, and the peak of all together.
  std::vector<MemoryUse> uses() const;

 private:
  struct OnDevice {
    MemoryUse highest;
    std::size_t states = 0, arena = 0, own = 0;
    std::size_t parameters = 0, state = 0;
  };
  std::vector<OnDevice> devices_;
  std::set<std::string> states_;  // by name, those that are counted
};

}  // namespace tandem
