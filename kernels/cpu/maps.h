// Kernels of one map to another that follow the order in which its elements lie.
#pragma once

#include "engine/device/kernel.h"

namespace tandem {

inline bool is_map_row_major(const Operand& map) {
  return is_row_major(map.layout, map.type.shape);
}

/// The first input and output channels-last or row-major, first as the input comes.
inline std::vector<Proposal> propose_map_as_it_comes(const KernelRequest& request) {
  using Kind = LayoutConstraint::Kind;
  const Operand& map = request.inputs[0];
  std::vector<Kind> kinds{Kind::row_major};
  if (map.type.rank() >= 3) {
    const bool last = map.layout.is_strided() && is_channels_last(map.layout, map.type.shape) &&
                      !is_map_row_major(map);
    kinds.insert(last ? kinds.begin() : kinds.end(), Kind::channels_last);
  }
  std::vector<Proposal> proposals;
  for (const Kind kind : kinds) {
    proposals.push_back({.inputs = {{kind, {}}}, .outputs = {{kind, {}}}});
  }
  return proposals;
}

}  // namespace tandem
