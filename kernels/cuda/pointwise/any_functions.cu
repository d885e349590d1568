// Scalar functions of every element type, Pow of two types, and casts, by single elements: for
// operands that lie anyhow, and for types that networks seldom compute in.
#pragma nv_diag_suppress 186  // x < 0 of unsigned integers, in functions of all numbers
#include "kernels/cuda/pointwise/pointwise_kernel.h"

namespace tandem::cuda {
namespace {

template <class T>
TANDEM_HOST_DEVICE T element(const PointwiseArguments& p, int input, const std::int64_t (&at)[4]) {
  return static_cast<const T*>(p.inputs[input])[at[input]];
}

template <class T>
struct AnyFunction {
  static constexpr const char* name = "pointwise";
  static constexpr int width = 1;

  template <int count>
  TANDEM_HOST_DEVICE static void run(const PointwiseArguments& p, const std::int64_t (&at)[4]) {
    using Computed = ComputedType<T>;
    const Computed a = widened(element<T>(p, 0, at));
    const Computed b = p.binary ? Computed(widened(element<T>(p, 1, at))) : Computed();
    static_cast<T*>(p.output)[at[3]] =
        stored<T>(scalar::apply<Computed>(p.function, p.settings, a, b));
  }
};

template <class T>
struct AnyPredicate {
  static constexpr const char* name = "pointwise";
  static constexpr int width = 1;

  template <int count>
  TANDEM_HOST_DEVICE static void run(const PointwiseArguments& p, const std::int64_t (&at)[4]) {
    using Computed = ComputedType<T>;
    const Computed a = widened(element<T>(p, 0, at));
    const Computed b = p.binary ? Computed(widened(element<T>(p, 1, at))) : Computed();
    static_cast<bool*>(p.output)[at[3]] =
        scalar::apply_predicate<Computed>(p.function, p.settings, a, b);
  }
};

// The exponent as the function takes it: floats for a float base; else as it is, widened.
template <class T>
struct AnyPower {
  static constexpr const char* name = "pointwise";
  static constexpr int width = 1;

  template <int count>
  TANDEM_HOST_DEVICE static void run(const PointwiseArguments& p, const std::int64_t (&at)[4]) {
    using Computed = ComputedType<T>;
    const Computed base = widened(element<T>(p, 0, at));
    static_cast<T*>(p.output)[at[3]] = stored<T>(with_stored(p.types[1], [&](auto tag) {
      using E = decltype(tag);
      const ComputedType<E> exponent = widened(element<E>(p, 1, at));
      if constexpr (scalar::floating<Computed>)
        return scalar::pow(base, static_cast<Computed>(exponent));
      else if constexpr (scalar::floating<ComputedType<E>>)
        return scalar::pow(base, static_cast<double>(exponent));
      else if constexpr (std::is_signed_v<E>)
        return scalar::pow(base, static_cast<std::int64_t>(exponent));
      else
        return scalar::pow(base, static_cast<std::uint64_t>(exponent));
    }));
  }
};

template <class T>
struct AnyCast {
  static constexpr const char* name = "cast";
  static constexpr int width = 1;

  template <int count>
  TANDEM_HOST_DEVICE static void run(const PointwiseArguments& p, const std::int64_t (&at)[4]) {
    static_cast<T*>(p.output)[at[3]] = stored<T>(with_stored(p.types[0], [&](auto tag) {
      return scalar::cast<ComputedType<T>>(widened(element<decltype(tag)>(p, 0, at)));
    }));
  }
};

}  // namespace

PointwiseVariant any_function(ScalarFunction f, DType dtype) {
  return with_stored(dtype, [&](auto tag) -> PointwiseVariant {
    using T = decltype(tag);
    if (is_predicate(f)) return variant_of<AnyPredicate<T>>();
    if constexpr (std::is_same_v<T, bool>)
      return {};
    else
      return variant_of<AnyFunction<T>>();
  });
}

PointwiseVariant any_power(DType base) {
  return with_stored(base, [&](auto tag) -> PointwiseVariant {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, bool>)
      return {};
    else
      return variant_of<AnyPower<T>>();
  });
}

PointwiseVariant any_cast(DType to) {
  return with_stored(to, [](auto tag) { return variant_of<AnyCast<decltype(tag)>>(); });
}

}  // namespace tandem::cuda
