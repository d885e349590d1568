// How a kernel of ours is started. Also for NVRTC: nothing of CUDA's headers.
#pragma once

#if !defined(__CUDACC_RTC__)
#include <cstddef>
#endif

namespace tandem::cuda {

/// How a kernel is spread over a GPU.
struct LaunchShape {
  unsigned blocks = 1, blocks_y = 1;  // at least 1; at most 2^31 - 1 and 65,535
  unsigned threads = 1;               // threads of a block; at most 1,024
  std::size_t shared_bytes = 0;       // dynamic; at most 48 KiB
};

/// A kernel of ours with its arguments. `entry` is the __global__ function, which takes the body by
/// value; `emulate` runs the same body on the host, block after block.
struct Launch {
  const char* name = "";
  const void* entry = nullptr;
  void (*emulate)(const LaunchShape& shape, const void* body) = nullptr;
  const void* body = nullptr;  // copied by the call
  std::size_t body_bytes = 0;
  LaunchShape shape;
};

}  // namespace tandem::cuda
