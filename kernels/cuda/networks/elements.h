// Packs of neighbouring elements as these kernels read and write them, and the float types.
#pragma once

#include <type_traits>

#include "engine/graph/types.h"
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

namespace tandem::cuda::networks {

template <class T>
inline constexpr bool is_floating = std::is_same_v<ComputedType<T>, float>;

/// Elements of 16 bytes.
template <class T>
inline constexpr int full_pack = 16 / static_cast<int>(sizeof(T));

template <int pack, class T>
TANDEM_HOST_DEVICE inline void load_pack(const T* from, ComputedType<T>* to) {
  T all[pack];
  load(all, from);
  TANDEM_UNROLL
  for (int i = 0; i < pack; ++i) to[i] = widened(all[i]);
}

template <int pack, class T>
TANDEM_HOST_DEVICE inline void store_pack(T* to, const ComputedType<T>* from) {
  T all[pack];
  TANDEM_UNROLL
  for (int i = 0; i < pack; ++i) all[i] = stored<T>(from[i]);
  store(to, all);
}

/// Calls f with a value of the type that stores float32, float16 or bfloat16 on the card.
template <class F>
void with_float(DType dtype, F&& f) {
  if (dtype == DType::float16) return f(CardFloat16{});
  if (dtype == DType::bfloat16) return f(CardBFloat16{});
  f(float{});
}

}  // namespace tandem::cuda::networks
