// Elements of tensors as these kernels read and write them: numbers of any type, and packs of
// neighbours in one access of up to 16 bytes. 16-bit floats compute in float.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "engine/runtime/kernel.h"
#include "kernels/cuda/block/block.h"
#include "kernels/cuda/pointwise/numbers.h"

/// In front of loops over registers: nvcc's pass for the card has to unroll them.
#if !defined(TANDEM_UNROLL)
#if defined(__CUDA_ARCH__)
#define TANDEM_UNROLL _Pragma("unroll")
#else
#define TANDEM_UNROLL
#endif
#endif

namespace tandem::cuda::reductions {

using Half = CardFloat16;
using Brain = CardBFloat16;

template <class T>
inline constexpr bool is_floating = std::is_same_v<ComputedType<T>, float>;

/// Elements of a 16-byte access.
template <class T>
inline constexpr int full_pack = 16 / static_cast<int>(sizeof(T));

/// Whether packs at this address, and at multiples of `stride` elements from it, are aligned.
template <class T>
inline bool takes_packs(const void* data, std::int64_t stride) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && stride % full_pack<T> == 0;
}

template <int pack, class T>
TANDEM_HOST_DEVICE inline void load(const T* from, ComputedType<T>* to) {
  T all[pack];
  cuda::load(all, from);
  TANDEM_UNROLL
  for (int i = 0; i < pack; ++i) to[i] = widened(all[i]);
}

template <int pack, class T>
TANDEM_HOST_DEVICE inline void store(T* to, const ComputedType<T>* from) {
  T all[pack];
  TANDEM_UNROLL
  for (int i = 0; i < pack; ++i) all[i] = stored<T>(from[i]);
  cuda::store(to, all);
}

/// A thread's numbers in registers: all indices have to be known to the compiler.
template <int count>
struct Registers {
  float values[count];
};

/// Floats of a type that is known at run time: parameters, weights, statistics. Null: none.
struct Floats {
  void* data = nullptr;
  DType type = DType::float32;

  Floats() = default;
  Floats(const void* address, DType of) : data(const_cast<void*>(address)), type(of) {}

  TANDEM_HOST_DEVICE explicit operator bool() const { return data != nullptr; }
  TANDEM_HOST_DEVICE float get(std::int64_t i) const {
    if (type == DType::float16) return widened(static_cast<const Half*>(data)[i]);
    if (type == DType::bfloat16) return widened(static_cast<const Brain*>(data)[i]);
    return static_cast<const float*>(data)[i];
  }
  /// Nothing where there is no data.
  TANDEM_HOST_DEVICE void set(std::int64_t i, float x) const {
    if (data == nullptr) return;
    if (type == DType::float16) {
      static_cast<Half*>(data)[i] = stored<Half>(x);
    } else if (type == DType::bfloat16) {
      static_cast<Brain*>(data)[i] = stored<Brain>(x);
    } else {
      static_cast<float*>(data)[i] = x;
    }
  }
};

/// int32 or int64.
struct Integers {
  const void* data = nullptr;
  bool wide = false;

  TANDEM_HOST_DEVICE std::int64_t get(std::int64_t i) const {
    return wide ? static_cast<const std::int64_t*>(data)[i]
                : static_cast<const std::int32_t*>(data)[i];
  }
};

inline bool is_card_float(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

/// Calls f with a value of the type that stores these floats on the card.
template <class F>
decltype(auto) with_float(DType dtype, F&& f) {
  if (dtype == DType::float16) return f(Half{});
  if (dtype == DType::bfloat16) return f(Brain{});
  return f(float{});
}

}  // namespace tandem::cuda::reductions
