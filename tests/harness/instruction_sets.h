// The instruction sets that this processor has, for kernels that exist once for each.
#pragma once

#include <vector>

#include "kernels/cpu/isa.h"

namespace tandem::testing {

inline std::vector<Isa> instruction_sets() {
  const DeviceFacts facts{"cpu", processor_features(), 1};
  std::vector<Isa> sets{Isa::baseline};
  if (facts.has("avx2")) sets.push_back(Isa::avx2);
  if (facts.has("avx512")) sets.push_back(Isa::avx512);
  return sets;
}

}  // namespace tandem::testing
