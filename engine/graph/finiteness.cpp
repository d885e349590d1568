#include "engine/graph/finiteness.h"

#include <algorithm>
#include <cstring>

namespace tandem {
namespace {

// Infinities and NaN have all bits of the exponent set and differ in those of the mantissa, below
// it: integer instructions test several values at a time.
template <class Bits>
Finiteness worst_of(const void* data, std::int64_t count, Bits exponent) {
  constexpr std::int64_t block = 4096 / sizeof(Bits);
  const Bits mantissa = static_cast<Bits>((exponent & (~exponent + 1)) - 1);
  Finiteness worst = Finiteness::finite;
  Bits values[block];
  for (std::int64_t at = 0; at < count; at += block) {
    const std::int64_t n = std::min(block, count - at);
    std::memcpy(values, static_cast<const Bits*>(data) + at,
                static_cast<std::size_t>(n) * sizeof(Bits));
    Bits bad = 0;
    for (std::int64_t i = 0; i < n; ++i)
      bad |= static_cast<Bits>((values[i] & exponent) == exponent);
    if (bad == 0) continue;
    worst = Finiteness::infinite;
    const auto is_nan = [&](Bits x) { return (x & exponent) == exponent && (x & mantissa) != 0; };
    if (std::any_of(values, values + n, is_nan)) return Finiteness::nan;
  }
  return worst;
}

}  // namespace

Finiteness finiteness_of(DType dtype, const void* data, std::int64_t count) {
  switch (dtype) {
    case DType::float32:
      return worst_of<std::uint32_t>(data, count, 0x7f800000);
    case DType::float64:
      return worst_of<std::uint64_t>(data, count, 0x7ff0000000000000);
    case DType::float16:
      return worst_of<std::uint16_t>(data, count, 0x7c00);
    case DType::bfloat16:
      return worst_of<std::uint16_t>(data, count, 0x7f80);
    default:
      return Finiteness::finite;
  }
}

Finiteness finiteness_of(const HostTensor& values) {
  return finiteness_of(values.dtype(), values.data(), values.type().elements());
}

}  // namespace tandem
