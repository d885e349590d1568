// Elements as kernels on a GPU read and write them: the 16-bit floats, and several elements at
// once. For g++, nvcc and NVRTC.
#pragma once

#if !defined(__CUDACC_RTC__)
#include <cstdint>
#include <cstring>

#include "engine/graph/half.h"
#include "kernels/shared/block/emulated_block.h"
#endif

#include "engine/graph/host_device.h"
#include "kernels/shared/block/unroll.h"

namespace tandem::cuda {

/// The storage of tandem::Float16 and tandem::BFloat16. Kernels compute in float.
struct GpuFloat16 {
  std::uint16_t bits;
};
struct GpuBFloat16 {
  std::uint16_t bits;
};

template <class T>
struct ComputedOf {
  using Type = T;
};
template <>
struct ComputedOf<GpuFloat16> {
  using Type = float;
};
template <>
struct ComputedOf<GpuBFloat16> {
  using Type = float;
};
/// What a stored type computes in: the 16-bit floats in float, all others in themselves.
template <class T>
using ComputedType = typename ComputedOf<T>::Type;

/// A number from its bits.
template <class T>
TANDEM_HOST_DEVICE inline T from_bits(std::uint64_t bits) {
  if constexpr (sizeof(T) == 4) {
    const auto low = static_cast<std::uint32_t>(bits);
#if defined(__CUDA_ARCH__)
    return __uint_as_float(low);
#else
    T x;
    std::memcpy(&x, &low, sizeof x);
    return x;
#endif
  } else {
#if defined(__CUDA_ARCH__)
    return __longlong_as_double(static_cast<long long>(bits));
#else
    T x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
#endif
  }
}

template <class T>
TANDEM_HOST_DEVICE inline T widened(T x) {
  return x;
}
TANDEM_HOST_DEVICE inline float widened(GpuFloat16 x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
#else
  return half_to_float(x.bits);
#endif
}
TANDEM_HOST_DEVICE inline float widened(GpuBFloat16 x) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
#else
  return bfloat16_to_float(x.bits);
#endif
}

/// Rounds to the nearest, ties to even.
template <class T>
TANDEM_HOST_DEVICE inline T stored(ComputedType<T> x) {
  if constexpr (sizeof(T) == 2 && sizeof(ComputedType<T>) == 4) {
    T y;
#if !defined(__CUDA_ARCH__)
    if constexpr (std::is_same_v<T, GpuFloat16>) {
      y.bits = float_to_half(x);
    } else {
      y.bits = float_to_bfloat16(x);
    }
#else
    if constexpr (std::is_same_v<T, GpuFloat16>) {
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    } else {
#if __CUDA_ARCH__ >= 800
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
      const unsigned bits = __float_as_uint(x);
      const unsigned nan = (bits >> 16) | 0x40u, rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
      y.bits = static_cast<std::uint16_t>(x != x ? nan : rounded >> 16);
#endif
    }
#endif
    return y;
  } else {
    return x;
  }
}

/// The value that x has after it was stored.
template <class T>
TANDEM_HOST_DEVICE inline ComputedType<T> rounded(ComputedType<T> x) {
  return widened(stored<T>(x));
}

namespace detail {

// Bytes that one access of an address moves; the address is a multiple of them.
template <int bytes>
struct Word;
#if defined(__CUDACC__)
template <>
struct Word<16> {
  using Type = uint4;
};
template <>
struct Word<8> {
  using Type = uint2;
};
#endif
template <>
struct Word<4> {
  using Type = std::uint32_t;
};
template <>
struct Word<2> {
  using Type = std::uint16_t;
};
template <>
struct Word<1> {
  using Type = std::uint8_t;
};

/// Emulated kernels end where a GPU would fault.
TANDEM_HOST_DEVICE inline void check_access(const void* address, std::size_t bytes) {
#if !defined(__CUDA_ARCH__) && !defined(__CUDACC_RTC__)
  check_global(address, bytes);
#else
  (void)address, (void)bytes;
#endif
}

}  // namespace detail

/// `count` elements that lie one after the other in global memory. Alignment: all of their bytes,
/// at most 16. Shared memory is read and written by plain assignments.
template <int count, class T>
TANDEM_HOST_DEVICE inline void load(T (&to)[count], const T* from) {
  constexpr int bytes = count * static_cast<int>(sizeof(T)), step = bytes < 16 ? bytes : 16;
  detail::check_access(from, step);
#if defined(__CUDA_ARCH__)
  using Word = typename detail::Word<step>::Type;
  TANDEM_UNROLL
  for (int i = 0; i < bytes / step; ++i) {
    const Word word = reinterpret_cast<const Word*>(from)[i];
    memcpy(reinterpret_cast<char*>(to) + i * step, &word, step);
  }
#else
  std::memcpy(to, from, sizeof to);
#endif
}

/// Like `load`, but writes: a plain assignment may become a store for each element.
template <int count, class T>
TANDEM_HOST_DEVICE inline void store(T* to, const T (&from)[count]) {
  constexpr int bytes = count * static_cast<int>(sizeof(T)), step = bytes < 16 ? bytes : 16;
  detail::check_access(to, step);
#if defined(__CUDA_ARCH__)
  using Word = typename detail::Word<step>::Type;
  TANDEM_UNROLL
  for (int i = 0; i < bytes / step; ++i) {
    Word word;
    memcpy(&word, reinterpret_cast<const char*>(from) + i * step, step);
    __stwb(reinterpret_cast<Word*>(to) + i, word);
  }
#else
  std::memcpy(to, from, sizeof from);
#endif
}

}  // namespace tandem::cuda
