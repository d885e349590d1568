// Packs of neighbouring elements in one access of up to 16 bytes, and the float types by name.
#pragma once

#include <cstdint>
#include <type_traits>

#include "engine/graph/dtype_dispatch.h"
#include "kernels/shared/block/block.h"
#include "kernels/shared/block/numbers.h"
#include "kernels/shared/block/unroll.h"

namespace tandem {

template <>
struct dtype_of<cuda::GpuFloat16> : dtype_of<Float16> {};
template <>
struct dtype_of<cuda::GpuBFloat16> : dtype_of<BFloat16> {};

}  // namespace tandem

namespace tandem::cuda {

template <class T>
inline constexpr bool is_floating = std::is_same_v<ComputedType<T>, float>;

/// Elements of a 16-byte access.
template <class T>
inline constexpr int full_pack = 16 / static_cast<int>(sizeof(T));

TANDEM_HOST_DEVICE inline bool is_aligned(const void* address, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

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

inline bool is_gpu_float(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

/// Calls f with a value of the type that stores float32, float16 or bfloat16 on the GPU.
template <class F>
decltype(auto) with_float(DType dtype, F&& f) {
  return with_type(TypeList<GpuFloat16, GpuBFloat16, float>{}, dtype, f);
}

}  // namespace tandem::cuda
