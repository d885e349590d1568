// Numbers of a type that is known at run time as these kernels read and write them; 16-bit floats
// compute in float.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "engine/device/kernel.h"
#include "kernels/shared/block/packs.h"

namespace tandem::cuda::reductions {

using Half = GpuFloat16;
using Brain = GpuBFloat16;

/// Whether packs at this address, and at multiples of `stride` elements from it, are aligned.
template <class T>
inline bool takes_packs(const void* data, std::int64_t stride) {
  return is_aligned(data, 16) && stride % full_pack<T> == 0;
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
  /// Does nothing where there is no data.
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

}  // namespace tandem::cuda::reductions
