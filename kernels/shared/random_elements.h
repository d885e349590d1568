// Which random word an element gets where several ranks share the samples: that of its place in the
// tensor of all of them.
#pragma once

#include <cstdint>

#include "engine/graph/attributes.h"
#include "engine/graph/host_device.h"
#include "engine/graph/types.h"

namespace tandem {

/// The tensor is stretches of `own` elements in which samples follow each other, `sample` elements
/// each; over all ranks such a stretch has `all` elements. own = 0: every rank has the whole
/// tensor.
struct RandomElements {
  std::uint64_t own = 0, all = 0, sample = 0;

  /// The index, counted over all ranks, of a row-major element. The stretch's next elements follow
  /// it.
  TANDEM_HOST_DEVICE constexpr std::uint64_t index(std::uint64_t first_sample,
                                                   std::uint64_t element) const {
    if (own == 0) return element;
    const std::uint64_t stretch = element / own;
    return stretch * all + first_sample * sample + (element - stretch * own);
  }
};

/// The RandomElements of a tensor of random numbers, by the attribute `samples` of its node: [axis,
/// entries of that axis a sample, entries over all ranks].
inline RandomElements random_elements(const Attributes& attributes, const Shape& shape) {
  const Ints& samples = attributes.integers("samples");
  if (samples.empty()) return {};
  const auto axis = static_cast<std::size_t>(samples[0]);
  std::uint64_t entry = 1;  // elements
  for (std::size_t i = axis + 1; i < shape.size(); ++i)
    entry *= static_cast<std::uint64_t>(shape[i]);
  return {static_cast<std::uint64_t>(shape[axis]) * entry,
          static_cast<std::uint64_t>(samples[2]) * entry,
          static_cast<std::uint64_t>(samples[1]) * entry};
}

}  // namespace tandem
