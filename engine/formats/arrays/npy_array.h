// One .npy array as a stream: what .npy files and the members of .npz archives have in common.
#pragma once

#include <cstdint>
#include <string>

#include "engine/formats/byte_stream.h"
#include "engine/graph/host_tensor.h"

namespace tandem {

struct NpyHeader {
  TensorType type;
  bool swapped = false;       // big endian
  bool column_major = false;  // only with two axes or more
};

/// Reads up to the first element. `bytes` is how long the stream is: Error{data} where it is not
/// exactly header and elements. `file` and `member` are for messages.
NpyHeader read_npy_header(ByteStream& from, std::uint64_t bytes, const std::string& file,
                          const std::string& member);
/// The elements, row-major, native byte order, converted to `as` on the way: only a piece of 1 MiB
/// is in memory besides the result.
HostTensor read_npy_elements(ByteStream& from, const NpyHeader& header, DType as,
                             const std::string& file, const std::string& member);
/// Magic, version 1.0 and header, padded to 64 bytes; the elements follow.
std::string npy_header(const TensorType& type);

}  // namespace tandem
