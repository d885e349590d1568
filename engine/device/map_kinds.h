// Layouts in which kernels take maps [N, C, space...] as they come.
#pragma once

#include <vector>

#include "engine/device/kernel.h"

namespace tandem {

/// Row-major and, for maps with space, channels-last: the one that the operand has comes first.
inline std::vector<LayoutConstraint::Kind> map_kinds(const Operand& map) {
  using Kind = LayoutConstraint::Kind;
  if (map.type.rank() < 3) return {Kind::row_major};
  const bool last = map.layout.is_strided() && is_channels_last(map.layout, map.type.shape) &&
                    !is_row_major(map.layout, map.type.shape);
  if (last) return {Kind::channels_last, Kind::row_major};
  return {Kind::row_major, Kind::channels_last};
}

}  // namespace tandem
