// One .npy array in memory: what .npy files and the members of .npz archives have in common.
#pragma once

#include <cstdint>
#include <string>

#include "engine/graph/host_tensor.h"

namespace tandem {

/// `where` names the file (and the member) in errors.
HostTensor parse_npy(const std::uint8_t* data, std::size_t bytes, const std::string& file,
                     const std::string& member);
/// Magic, version 1.0 and header, padded to 64 bytes; the elements follow.
std::string npy_header(const TensorType& type);

}  // namespace tandem
