#include "engine/formats/idx.h"

#include <cstring>

#include "engine/formats/gzip.h"
#include "engine/graph/error.h"

namespace tandem {

HostTensor read_idx(const std::string& path) {
  const auto owner = std::make_shared<std::vector<std::uint8_t>>(read_maybe_gzip(path));
  const std::vector<std::uint8_t>& file = *owner;
  const auto fail = [&](std::string message, std::string expected = "", std::string got = "") {
    throw Error(ErrorKind::data, {.message = std::move(message),
                                  .file = path,
                                  .expected = std::move(expected),
                                  .got = std::move(got)});
  };
  if (file.size() < 4 || file[0] != 0 || file[1] != 0) fail("not an IDX file");
  TensorType type;
  switch (file[2]) {
    case 0x08:
      type.dtype = DType::uint8;
      break;
    case 0x09:
      type.dtype = DType::int8;
      break;
    case 0x0b:
      type.dtype = DType::int16;
      break;
    case 0x0c:
      type.dtype = DType::int32;
      break;
    case 0x0d:
      type.dtype = DType::float32;
      break;
    case 0x0e:
      type.dtype = DType::float64;
      break;
    default:
      fail("not an IDX file: unknown element type (at byte 2)");
  }
  const std::size_t rank = file[3], start = 4 + 4 * rank;
  if (rank == 0 || file.size() < start) fail("the IDX file is cut off in its header");
  const std::size_t size = size_of(type.dtype);
  std::uint64_t bytes = size;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::uint8_t* at = file.data() + 4 + 4 * axis;
    const std::uint32_t extent =
        std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 | at[3];
    type.shape.push_back(extent);
    if (__builtin_mul_overflow(bytes, std::uint64_t{extent}, &bytes))
      fail("the shape is too large");
  }
  const std::uint64_t there = file.size() - start;
  if (there != bytes) {
    const std::uint64_t row =
        type.shape[0] > 0 ? bytes / static_cast<std::uint64_t>(type.shape[0]) : 0;
    fail(there > bytes ? "bytes follow the array"
         : row > 0     ? "the IDX file is cut off in row " + std::to_string(there / row)
                       : "the IDX file is cut off",
         to_string(type) + ", " + std::to_string(bytes) + " bytes after offset " +
             std::to_string(start),
         std::to_string(there) + " bytes");
  }
  if (size == 1) return HostTensor(type, owner->data() + start, owner);
  HostTensor tensor(type);  // big endian in the file
  auto* to = static_cast<std::uint8_t*>(tensor.data());
  const std::uint8_t* from = file.data() + start;
  for (std::uint64_t i = 0; i < bytes; ++i) to[i] = from[i - i % size + (size - 1 - i % size)];
  return tensor;
}

}  // namespace tandem
