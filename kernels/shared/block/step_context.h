// A step's context as kernels on the GPU read it: the bytes of StepContext and ErrorWord, with
// plain numbers for the atomic ones.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/graph/host_device.h"

namespace tandem::cuda {

struct DeviceErrorWord {
  long long packed;  // kind << 32 | node index; 0: none
  long long value;
};

struct DeviceStepContext {
  std::uint64_t seed, step, micro_batch, first_sample;
  DeviceErrorWord* error;
};

/// The first report wins, as ErrorWord::report.
TANDEM_HOST_DEVICE inline void report_error(DeviceErrorWord* word, int kind, std::int32_t node,
                                            long long offending) {
  const long long wanted = (static_cast<long long>(kind) << 32) | static_cast<std::uint32_t>(node);
#if defined(__CUDA_ARCH__)
  const auto old = atomicCAS_system(reinterpret_cast<unsigned long long*>(&word->packed), 0ull,
                                    static_cast<unsigned long long>(wanted));
  if (old == 0ull) word->value = offending;
#else  // another thread of the host may be reading it
  std::atomic_ref<long long> packed(word->packed), value(word->value);
  long long none = 0;
  if (packed.compare_exchange_strong(none, wanted)) value.store(offending);
#endif
}

}  // namespace tandem::cuda
