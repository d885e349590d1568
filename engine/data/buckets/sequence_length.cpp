#include "engine/data/buckets/sequence_length.h"

#include <algorithm>
#include <cassert>

#include "engine/data/functions/field_function.h"

namespace tandem {

std::int64_t sequence_length(const TensorType& type, const void* values, std::int64_t pad) {
  assert(!type.shape.empty());
  const std::int64_t places = type.shape[0], count = type.elements();
  std::int64_t length = 0;
  with_type(type.dtype, [&](auto zero) {
    const auto* const all = static_cast<const decltype(zero)*>(values);
    const auto fill = static_cast<double>(pad);
    std::int64_t end = count;
    while (end > 0 && number_at(all[end - 1]) == fill) --end;
    const std::int64_t each = std::max<std::int64_t>(count / std::max<std::int64_t>(places, 1), 1);
    length = (end + each - 1) / each;
  });
  return length;
}

}  // namespace tandem
