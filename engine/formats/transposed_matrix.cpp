#include "engine/formats/transposed_matrix.h"

#include <algorithm>

#include "engine/graph/size_dispatch.h"

namespace tandem {

HostTensor transposed_matrix(const HostTensor& from) {
  const std::int64_t rows = from.shape()[0], columns = from.shape()[1];
  HostTensor to(TensorType{from.dtype(), {columns, rows}});
  with_size(size_of(from.dtype()), [&](auto element) {
    const auto* source = static_cast<const decltype(element)*>(from.data());
    auto* target = static_cast<decltype(element)*>(to.data());
    constexpr std::int64_t tile = 32;  // stays in a cache
    for (std::int64_t r = 0; r < rows; r += tile) {
      for (std::int64_t c = 0; c < columns; c += tile) {
        for (std::int64_t i = r; i < std::min(r + tile, rows); ++i) {
          for (std::int64_t j = c; j < std::min(c + tile, columns); ++j)
            target[j * rows + i] = source[i * columns + j];
        }
      }
    }
  });
  return to;
}

}  // namespace tandem
