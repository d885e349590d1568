// Kernels of all scalar functions over one element type, a kernel for each function, for nvcc.
#pragma once

#include <array>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/cuda/pointwise/pointwise_kernel.h"
#include "kernels/reference/scalar_operators.h"

namespace tandem::cuda {

/// y = f(a) or f(a, b), of elements T; bool where f is a predicate.
template <class T, ScalarFunction f>
struct FixedFunction {
  static constexpr const char* name = "pointwise_units";
  static constexpr int width = unit_width<T>;
  static constexpr bool binary = is_binary(f), predicate = is_predicate(f);

  template <int count>
  TANDEM_HOST_DEVICE static void run(const PointwiseArguments& p, const std::int64_t (&at)[4]) {
    using Computed = ComputedType<T>;
    T a[count], b[count];
    read(a, p.inputs[0], at[0], p.space.inner[0]);
    if constexpr (binary) read(b, p.inputs[1], at[1], p.space.inner[1]);
    const auto second = [&](int i) {
      if constexpr (binary)
        return widened(b[i]);
      else
        return Computed();
    };
    if constexpr (predicate) {
      bool y[count];
      for (int i = 0; i < count; ++i) {
        y[i] = scalar::apply_predicate<Computed>(f, p.settings, widened(a[i]), second(i));
      }
      write(p.output, at[3], y);
    } else {
      T y[count];
      for (int i = 0; i < count; ++i) {
        y[i] = stored<T>(scalar::apply<Computed>(f, p.settings, widened(a[i]), second(i)));
      }
      write(p.output, at[3], y);
    }
  }
};

constexpr bool has_fixed_function(ScalarFunction f) {
  switch (types_of(f)) {
    case ScalarTypes::numbers:
    case ScalarTypes::floats:
    case ScalarTypes::any:
      return true;
    case ScalarTypes::integers:
    case ScalarTypes::booleans:
    case ScalarTypes::own:
      break;
  }
  return f == ScalarFunction::pow || f == ScalarFunction::identity;
}

/// One more than the last function that has a kernel; found, so that enumerators may be appended.
constexpr int function_count() {
  int count = 0;
  for (int i = 0; i <= std::numeric_limits<std::underlying_type_t<ScalarFunction>>::max(); ++i) {
    if (has_fixed_function(static_cast<ScalarFunction>(i))) count = i + 1;
  }
  return count;
}

template <class T, ScalarFunction f>
PointwiseVariant fixed_variant() {
  if constexpr (has_fixed_function(f))
    return variant_of<FixedFunction<T, f>>();
  else
    return {};
}

template <class T, int... functions>
PointwiseVariant fixed_function(ScalarFunction f, std::integer_sequence<int, functions...>) {
  static const std::array<PointwiseVariant, sizeof...(functions)> table = {
      fixed_variant<T, static_cast<ScalarFunction>(functions)>()...};
  const auto i = static_cast<std::size_t>(f);
  return i < table.size() ? table[i] : PointwiseVariant{};
}

template <class T>
PointwiseVariant fixed_function(ScalarFunction f) {
  return fixed_function<T>(f, std::make_integer_sequence<int, function_count()>());
}

}  // namespace tandem::cuda
