// IDX files (MNIST and its kin), plain or gzipped.
#pragma once

#include <string>

#include "engine/graph/host_tensor.h"

namespace tandem {

/// Shape as the file says it, native byte order. Error{data} with file and offset.
HostTensor read_idx(const std::string& path);

}  // namespace tandem
