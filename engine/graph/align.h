// Rounds sizes and addresses up to a multiple.
#pragma once

#include <type_traits>

namespace tandem {

/// The least multiple of `unit` that is not below `value`; both are positive or zero, `unit` is not
/// zero.
template <class T>
constexpr T align_up(T value, std::type_identity_t<T> unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace tandem
