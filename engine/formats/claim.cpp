#include "engine/formats/claim.h"

#include <limits>

#include "engine/graph/host_memory.h"

namespace tandem {

std::optional<std::uint64_t> bytes_of_array(DType dtype, const Shape& shape) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 2;
  auto bytes = static_cast<std::int64_t>(size_of(dtype));
  bool empty = false;
  for (const std::int64_t extent : shape) {
    empty |= extent == 0;
    if (extent == 0) continue;
    if (__builtin_mul_overflow(bytes, extent, &bytes) || bytes > most) return std::nullopt;
  }
  return empty ? 0 : static_cast<std::uint64_t>(bytes);
}

void claim_memory(std::uint64_t bytes, const std::string& file, const std::string& array,
                  const std::string& got) {
  expect_memory(bytes, {.message = "the file's arrays need more memory than there is",
                        .file = file,
                        .path = array,
                        .got = got,
                        .fix = "store fewer rows or smaller elements"});
}

}  // namespace tandem
