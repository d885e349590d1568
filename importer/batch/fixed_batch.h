// The batch that a file fixes.
#pragma once

#include <cstdint>

#include "importer/file/onnx_file.h"

namespace tandem {

/// Axis 0 of the first fed input whose file gives it an extent; 0 where it is free.
std::int64_t fixed_batch(const OnnxFile& file);

}  // namespace tandem
