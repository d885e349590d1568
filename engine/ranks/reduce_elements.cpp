#include "engine/ranks/reduce_elements.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <type_traits>

#include "engine/graph/half.h"

namespace tandem {
namespace {

// Elements that are reduced at a time: the accumulators stay in the first cache, and loops of a
// known length become vector code.
constexpr std::size_t block = 1024;

struct Sum {
  template <class A>
  static A of(A a, A b) {
    return static_cast<A>(a + b);
  }
};
struct Maximum {
  template <class A>
  static A of(A a, A b) {
    return a < b || b != b ? b : a;
  }
};
struct Minimum {
  template <class A>
  static A of(A a, A b) {
    return b < a || b != b ? b : a;
  }
};

template <class T>
using Wide = std::conditional_t<std::is_class_v<T>, float, T>;  // float for 16-bit floats

template <class Operation, class A, class T>
void take_block(A* sums, const T* from, std::size_t count) {
  if (count == block) {
    for (std::size_t i = 0; i < block; ++i)
      sums[i] = Operation::of(sums[i], static_cast<A>(from[i]));
  } else {
    for (std::size_t i = 0; i < count; ++i)
      sums[i] = Operation::of(sums[i], static_cast<A>(from[i]));
  }
}

/// Elements [begin, begin + count) of the operands first, first + step, first + 2 step, ...
template <class Operation, class A, class T>
void reduce_block(A* sums, std::span<const void* const> from, std::size_t first, std::size_t step,
                  std::size_t begin, std::size_t count) {
  const auto elements = [&](std::size_t rank) { return static_cast<const T*>(from[rank]) + begin; };
  const std::size_t second = first + step;
  if (second >= from.size()) {
    const T* const only = elements(first);
    for (std::size_t i = 0; i < count; ++i) sums[i] = static_cast<A>(only[i]);
    return;
  }
  reduce_block<Operation, A, T>(sums, from, first, 2 * step, begin, count);
  if (second + 2 * step >= from.size()) return take_block<Operation>(sums, elements(second), count);
  std::array<A, block> others;
  reduce_block<Operation, A, T>(others.data(), from, second, 2 * step, begin, count);
  take_block<Operation>(sums, static_cast<const A*>(others.data()), count);
}

template <class Operation, class T>
void reduce_with(void* to, std::span<const void* const> from, std::size_t count, bool is_mean) {
  using A = Wide<T>;
  std::array<A, block> sums;
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::size_t here = std::min(block, count - begin);
    reduce_block<Operation, A, T>(sums.data(), from, 0, 1, begin, here);
    if constexpr (std::is_floating_point_v<A>) {
      const A ranks = static_cast<A>(from.size());
      if (is_mean) {
        for (std::size_t i = 0; i < here; ++i) sums[i] /= ranks;
      }
    }
    T* const out = static_cast<T*>(to) + begin;
    for (std::size_t i = 0; i < here; ++i) out[i] = static_cast<T>(sums[i]);
  }
}

/// S: what sums are computed in, so that integers wrap around.
template <class T, class S = T>
void reduce(void* to, std::span<const void* const> from, std::size_t count, Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return reduce_with<Sum, S>(to, from, count, false);
    case Reduction::mean:
      return reduce_with<Sum, S>(to, from, count, true);
    case Reduction::maximum:
      return reduce_with<Maximum, T>(to, from, count, false);
    case Reduction::minimum:
      return reduce_with<Minimum, T>(to, from, count, false);
  }
}

template <class T>
void divide_all(void* sums, std::size_t count, int ranks) {
  T* const all = static_cast<T*>(sums);
  for (std::size_t i = 0; i < count; ++i) all[i] /= static_cast<T>(ranks);
}

}  // namespace

std::optional<std::string> reduction_problem(DType dtype, Reduction reduction) {
  if (reduction == Reduction::sum && dtype == DType::boolean)
    return "there is no sum of booleans: cast to int32 before it";
  if (reduction == Reduction::mean && !is_float(dtype))
    return "there is no mean of " + std::string(name_of(dtype)) + ": cast to float32 before it";
  if (is_float8(dtype))
    return "8-bit floats are not reduced: cast " + std::string(name_of(dtype)) +
           " to float32 before it";
  return std::nullopt;
}

void reduce_elements(void* to, std::span<const void* const> from, std::size_t count, DType dtype,
                     Reduction reduction) {
  switch (dtype) {
    case DType::float32:
      return reduce<float>(to, from, count, reduction);
    case DType::float64:
      return reduce<double>(to, from, count, reduction);
    case DType::float16:
      return reduce<Float16>(to, from, count, reduction);
    case DType::bfloat16:
      return reduce<BFloat16>(to, from, count, reduction);
    case DType::int8:
      return reduce<std::int8_t, std::uint8_t>(to, from, count, reduction);
    case DType::int16:
      return reduce<std::int16_t, std::uint16_t>(to, from, count, reduction);
    case DType::int32:
      return reduce<std::int32_t, std::uint32_t>(to, from, count, reduction);
    case DType::int64:
      return reduce<std::int64_t, std::uint64_t>(to, from, count, reduction);
    case DType::uint8:
    case DType::boolean:
      return reduce<std::uint8_t>(to, from, count, reduction);
    case DType::uint16:
      return reduce<std::uint16_t>(to, from, count, reduction);
    case DType::uint32:
      return reduce<std::uint32_t>(to, from, count, reduction);
    case DType::uint64:
      return reduce<std::uint64_t>(to, from, count, reduction);
    case DType::float8_e4m3fn:
    case DType::float8_e4m3fnuz:
    case DType::float8_e5m2:
    case DType::float8_e5m2fnuz:
    case DType::float8_e8m0fnu:
      assert(false && "reduction_problem refuses them");
  }
}

void divide_elements(void* sums, std::size_t count, DType dtype, int ranks) {
  assert(dtype == DType::float32 || dtype == DType::float64);
  if (dtype == DType::float32) return divide_all<float>(sums, count, ranks);
  divide_all<double>(sums, count, ranks);
}

}  // namespace tandem
