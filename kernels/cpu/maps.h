// Kernels of one map to another that follow the order in which its elements lie.
#pragma once

#include "engine/device/kernel.h"
#include "engine/device/map_kinds.h"

namespace tandem {

inline bool is_map_row_major(const Operand& map) {
  return is_row_major(map.layout, map.type.shape);
}

/// The first input and output channels-last or row-major, first as the input comes.
inline std::vector<Proposal> propose_map_as_it_comes(const KernelRequest& request) {
  std::vector<Proposal> proposals;
  for (const LayoutConstraint::Kind kind : map_kinds(request.inputs[0])) {
    proposals.push_back({.inputs = {{kind, {}}}, .outputs = {{kind, {}}}});
  }
  return proposals;
}

}  // namespace tandem
