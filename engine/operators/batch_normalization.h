// What the three operators of batch normalisation check alike.
#pragma once

#include "engine/operators/network_checks.h"

namespace tandem::operators {

/// x (input `i`) is [N, C, ...] of floats; returns [C].
inline Shape require_channels(const NodeView& view, std::size_t i) {
  require_float(view, i);
  const Shape& x = view.input(i).shape;
  if (x.size() < 2) {
    view.fail(input_name(view, i) + " has the wrong rank", "[N, C, ...]", to_string(x));
  }
  return {x[1]};
}

/// Input `i` is a float for each channel.
inline void require_per_channel(const NodeView& view, std::size_t i, const Shape& channels) {
  require_float(view, i);
  require_shape(view, i, channels);
}

}  // namespace tandem::operators
