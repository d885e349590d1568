// What kernels share on the host's side: how many blocks, copies and zeros within a run, what
// requests hold.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/context.h"

namespace tandem::cuda {

/// Blocks for this much work where each takes `each` of it at a time, in strides: enough to fill
/// the GPU and no more.
inline unsigned blocks_for(int multiprocessors, std::int64_t work, std::int64_t each,
                           int per_multiprocessor = 8) {
  const std::int64_t wanted = (work + each - 1) / each;
  const std::int64_t most = std::int64_t{std::max(multiprocessors, 1)} * per_multiprocessor;
  return static_cast<unsigned>(std::clamp<std::int64_t>(wanted, 1, most));
}
inline unsigned blocks_for(const GpuContext& gpu, std::int64_t work, std::int64_t each,
                           int per_multiprocessor = 8) {
  return blocks_for(gpu.properties.multiprocessors, work, each, per_multiprocessor);
}

/// A thread to each unit, in strides where that were more than eight blocks a multiprocessor.
inline LaunchShape spread(std::int64_t units, int multiprocessors, unsigned threads = 256) {
  return {.blocks = blocks_for(multiprocessors, units, threads), .threads = threads};
}

inline void check_call(GpuContext& gpu, const char* what, cudaError_t error) {
  if (error != cudaSuccess) gpu.fail(what, gpu.runtime->error_text(error));
}

/// Within the run of a kernel; `queue` is KernelArguments::queue. Where both are the same place,
/// nothing moves.
inline void copy_bytes(GpuContext& gpu, void* to, const void* from, std::size_t bytes,
                       void* queue) {
  if (to == from || bytes == 0) return;
  check_call(gpu, "a copy", gpu.runtime->copy(to, from, bytes, static_cast<cudaStream_t>(queue)));
}
/// Does nothing where `to` is null.
void zero_bytes(GpuContext& gpu, void* to, std::size_t bytes, void* queue);  // zero_bytes.cu

/// A reason where the scalars lr and scale of an update are not float32.
inline std::optional<std::string> refuse_scalars(const KernelRequest& request, std::size_t first) {
  for (std::size_t i : {first, first + 2}) {
    if (request.inputs[i].type.dtype != DType::float32) return "scalars that are not float32";
  }
  return std::nullopt;
}

/// Bytes of a part of the workspace; parts begin at multiples of 256.
inline std::size_t padded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace tandem::cuda
