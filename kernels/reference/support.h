// What the reference kernels share: their frame, operand walks, and arithmetic types.
#pragma once

#include <cstring>
#include <type_traits>

#include "engine/device/kernel_forms.h"
#include "engine/graph/host_tensor.h"
#include "engine/graph/size_dispatch.h"
#include "engine/operators/broadcast.h"
#include "kernels/reference/position.h"

namespace tandem::reference {

using Prepare = std::unique_ptr<PreparedKernel> (*)(const KernelRequest&);
using Refuse = std::optional<std::string> (*)(const KernelRequest&);

/// A kernel that takes any strides.
inline Kernel reference_kernel(std::string name, std::string op, Refuse refuse, Prepare prepare) {
  return {"reference." + name, std::move(op), refuse, propose_any_strides, prepare, true};
}

/// Calls f with a value of float or double.
template <class F>
auto with_main_type(DType dtype, F&& f) {
  return dtype == DType::float64 ? f(double{}) : f(float{});
}

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

/// What a stored type computes in: the 16-bit floats in float, all others in themselves.
template <class T>
using Computed = std::conditional_t<is_half<T>, float, T>;

/// What sums of a stored type are kept in: double, or 64 bits that wrap around.
template <class T>
using Accumulator =
    std::conditional_t<is_half<T> || std::is_floating_point_v<T>, double, std::uint64_t>;

template <class T>
Accumulator<T> widened(T x) {
  return static_cast<Accumulator<T>>(static_cast<Computed<T>>(x));
}

template <class T>
T stored(Computed<T> x) {
  return T(x);
}

/// An accumulated sum as the stored type.
template <class T>
T narrowed(Accumulator<T> sum) {
  return T(static_cast<Computed<T>>(sum));
}

inline Position walk(const Operand& operand) {
  return Position(operand.type.shape, operand.layout.strides);
}

inline std::vector<Position> walks(const std::vector<Operand>& operands) {
  std::vector<Position> result;
  for (const Operand& operand : operands) result.push_back(walk(operand));
  return result;
}

/// The operand as one of a larger shape that it is broadcast to.
inline Position walk_broadcast(const Operand& operand, const Shape& shape) {
  return Position(shape, broadcast_strides(operand.layout.strides, operand.type.shape, shape));
}

/// Copies elements of `size` bytes from one walk to another of equal count.
inline void copy_elements(const void* from, Position& source, void* to, Position& target,
                          std::size_t size) {
  const auto run = [&](auto tag) {
    using T = decltype(tag);
    const T* x = static_cast<const T*>(from);
    T* y = static_cast<T*>(to);
    source.reset();
    target.reset();
    for (std::int64_t i = 0; i < target.count(); ++i) {
      y[target.at()] = x[source.at()];
      source.next();
      target.next();
    }
  };
  with_size(size, run);
}

inline void zero_elements(void* to, Position& target, std::size_t size) {
  char* bytes = static_cast<char*>(to);
  target.reset();
  for (std::int64_t i = 0; i < target.count(); ++i, target.next()) {
    std::memset(bytes + target.at() * static_cast<std::int64_t>(size), 0, size);
  }
}

}  // namespace tandem::reference
