// Copies between a row-major tensor and its bytes in a layout, in host memory.
#pragma once

#include <cstddef>

#include "engine/graph/types.h"

namespace tandem {

/// Bytes of a buffer that holds a value of this type in this layout.
std::size_t buffer_bytes(const TensorType& type, const Layout& layout);
/// `from` is row-major; `to` a whole buffer in that (strided) layout.
void to_layout(void* to, const Layout& layout, const void* from, const TensorType& type);
/// The other way round.
void from_layout(void* to, const void* from, const Layout& layout, const TensorType& type);

}  // namespace tandem
