#include "engine/formats/arrays/idx.h"

#include <algorithm>
#include <optional>

#include "engine/formats/claim.h"
#include "engine/formats/gzip.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

std::optional<DType> type_of(std::uint8_t code) {
  switch (code) {
    case 0x08:
      return DType::uint8;
    case 0x09:
      return DType::int8;
    case 0x0b:
      return DType::int16;
    case 0x0c:
      return DType::int32;
    case 0x0d:
      return DType::float32;
    case 0x0e:
      return DType::float64;
    default:
      return std::nullopt;
  }
}

}  // namespace

HostTensor read_idx(const std::string& path) {
  const InputFile file(path);
  UnpackedFile stream(file);
  const auto fail = [&](std::string message, std::string expected = "", std::string got = "") {
    throw Error(ErrorKind::data, {.message = std::move(message),
                                  .file = path,
                                  .expected = std::move(expected),
                                  .got = std::move(got)});
  };
  std::uint8_t head[4];
  if (read_fully(stream, head, 4) < 4 || head[0] != 0 || head[1] != 0) fail("not an IDX file");
  const std::optional<DType> dtype = type_of(head[2]);
  if (!dtype) fail("not an IDX file: unknown element type (at byte 2)");
  TensorType type{*dtype, {}};
  const std::size_t rank = head[3], start = 4 + 4 * rank;
  std::uint8_t extents[4 * 255];
  if (rank == 0 || read_fully(stream, extents, 4 * rank) < 4 * rank) {
    fail("the IDX file is cut off in its header");
  }
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::uint8_t* at = extents + 4 * axis;
    type.shape.push_back(std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 |
                         std::uint32_t{at[2]} << 8 | at[3]);
  }
  const std::optional<std::uint64_t> bytes = bytes_of_array(type.dtype, type.shape);
  if (!bytes) fail("the shape is too large", "", to_string(type));
  const std::string wanted = to_string(type) + ", " + std::to_string(*bytes) +
                             " bytes after offset " + std::to_string(start);
  const auto cut_off = [&](std::uint64_t there) {
    const std::uint64_t row =
        type.shape[0] > 0 ? *bytes / static_cast<std::uint64_t>(type.shape[0]) : 0;
    fail(row > 0 ? "the IDX file is cut off in row " + std::to_string(there / row)
                 : "the IDX file is cut off",
         wanted, std::to_string(there) + " bytes");
  };
  const std::uint64_t most = stream.most() - std::min<std::uint64_t>(stream.most(), start);
  if (*bytes > most && !stream.packed()) cut_off(most);
  if (*bytes > most) {
    fail("the file is cut off, or its header is wrong: so few bytes cannot unpack to its array",
         wanted, std::to_string(file.size()) + " bytes, packed");
  }
  claim_memory(*bytes, path, "", wanted);
  HostTensor tensor(type);
  auto* to = static_cast<std::uint8_t*>(tensor.data());
  const std::uint64_t there = read_fully(stream, to, *bytes);
  if (there < *bytes) cut_off(there);
  std::uint8_t beyond;
  if (stream.read(&beyond, 1) > 0) {
    fail("bytes follow the array", wanted,
         stream.packed() ? "more bytes" : std::to_string(most) + " bytes");
  }
  const std::size_t size = size_of(type.dtype);  // big endian in the file
  if (size > 1) {
    for (std::uint64_t i = 0; i < *bytes; i += size) std::reverse(to + i, to + i + size);
  }
  return tensor;
}

}  // namespace tandem
