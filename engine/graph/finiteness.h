// Whether numbers are finite, faster than one by one.
#pragma once

#include <cstdint>

#include "engine/graph/host_tensor.h"

namespace tandem {

enum class Finiteness : std::uint8_t { finite, infinite, nan };  // the worst of some values

/// Types that are not floats count as finite.
Finiteness finiteness_of(DType dtype, const void* data, std::int64_t count);
Finiteness finiteness_of(const HostTensor& values);

}  // namespace tandem
