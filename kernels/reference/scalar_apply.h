// From an operator's ScalarFunction and attributes to the function of scalar.h.
#pragma once

#include <cassert>

#include "engine/operators/scalar_functions.h"
#include "kernels/shared/scalar.h"

namespace tandem::scalar {

/// The attributes of a function, in the order of its row.
struct Settings {
  double first = 0, second = 0;
};

inline Settings settings_of(const Node& node) {
  const ScalarSettings settings = scalar_settings(node);
  return {settings[0], settings[1]};
}

/// Whether the code of functions of such element types takes numbers T. bool counts as a number in
/// predicates, and a number as bool: tiles hold it so.
template <class T, ScalarTypes types>
inline constexpr bool computes = types == ScalarTypes::floats     ? floating<T>
                                 : types == ScalarTypes::integers ? !floating<T>
                                                                  : types != ScalarTypes::own;

// The operands, then as many attributes as the function takes.
#define TANDEM_OPERANDS_1 a
#define TANDEM_OPERANDS_2 a, b
#define TANDEM_CALL(function, ...)                                                             \
  if constexpr (requires { scalar::function(__VA_ARGS__, T(), T()); })                         \
    return scalar::function(__VA_ARGS__, scalar::cast<T>(s.first), scalar::cast<T>(s.second)); \
  else if constexpr (requires { scalar::function(__VA_ARGS__, T()); })                         \
    return scalar::function(__VA_ARGS__, scalar::cast<T>(s.first));                            \
  else                                                                                         \
    return scalar::function(__VA_ARGS__);
#define TANDEM_CASE(function, operands, types)          \
  case ScalarFunction::function:                        \
    if constexpr (computes<T, ScalarTypes::types>) {    \
      TANDEM_CALL(function, TANDEM_OPERANDS_##operands) \
    }                                                   \
    break;

/// f with a bool result, of one or two operands.
template <class T>
TANDEM_HOST_DEVICE bool apply_predicate(ScalarFunction f, [[maybe_unused]] const Settings& s, T a,
                                        T b = T()) {
  switch (f) {
#define TANDEM_PREDICATE(function, name, operands, types, ...) \
  TANDEM_CASE(function, operands, types)
#include "engine/operators/scalar_functions.inl"
    default:
      break;
  }
  assert(false && "not a predicate");
  return false;
}

/// f of one or two operands of one type, with a result of that type. Not for predicates, Cast and
/// Where.
template <class T>
TANDEM_HOST_DEVICE T apply(ScalarFunction f, const Settings& s, T a, T b = T()) {
  switch (f) {
    case ScalarFunction::identity:
      return a;
    case ScalarFunction::pow:
      return pow(a, b);
#define TANDEM_FUNCTION(function, name, operands, types, ...) TANDEM_CASE(function, operands, types)
#define TANDEM_PREDICATE(...)
#include "engine/operators/scalar_functions.inl"
    default:
      break;
  }
  assert(false && "no such function of this element type");
  return a;
}

/// Like `apply`, for a function that is known when compiling, which may be a predicate, in loops
/// that the compiler turns into vectors.
template <ScalarFunction f, class T>
auto apply_known([[maybe_unused]] const Settings& s, T a, [[maybe_unused]] T b = T()) {
#define TANDEM_FUNCTION(function, name, operands, types, ...) \
  if constexpr (f == ScalarFunction::function) {              \
    TANDEM_CALL(function, TANDEM_OPERANDS_##operands)         \
  }
#include "engine/operators/scalar_functions.inl"
}

#undef TANDEM_OPERANDS_1
#undef TANDEM_OPERANDS_2
#undef TANDEM_CALL
#undef TANDEM_CASE

}  // namespace tandem::scalar
