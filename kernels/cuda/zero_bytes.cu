// Zeros in the GPU's memory, as a launch like all others.
#include "kernels/cuda/launching.h"
#include "kernels/shared/block/block.h"
#include "kernels/shared/block/numbers.h"

namespace tandem::cuda {
namespace {

constexpr int block_threads = 256;

/// Whole numbers of 16 bytes from an aligned address on, and the bytes before and after them.
struct Zeros {
  unsigned char* first;
  std::size_t before, middle, behind;  // middle: in 16 bytes

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const std::size_t stride = static_cast<std::size_t>(block.blocks()) * block.threads();
    block.each([&](int thread) {
      const std::size_t own =
          static_cast<std::size_t>(block.index()) * block.threads() + static_cast<unsigned>(thread);
      auto* const aligned = reinterpret_cast<uint4*>(first + before);
      const uint4 zeros[] = {uint4{}};
      for (std::size_t i = own; i < middle; i += stride) store(aligned + i, zeros);
      if (own < before) first[own] = 0;
      if (own < behind) first[before + 16 * middle + own] = 0;
    });
  }
};

}  // namespace

void zero_bytes(GpuContext& gpu, void* to, std::size_t bytes, void* queue) {
  if (to == nullptr || bytes == 0) return;
  Zeros body{};
  body.first = static_cast<unsigned char*>(to);
  body.before = std::min<std::size_t>(bytes, (16 - reinterpret_cast<std::uintptr_t>(to) % 16) % 16);
  body.middle = (bytes - body.before) / 16;
  body.behind = (bytes - body.before) % 16;
  const LaunchShape shape{
      .blocks = blocks_for(gpu, static_cast<std::int64_t>(body.middle), 4 * block_threads),
      .threads = block_threads};
  gpu.launch(launch_of("zero bytes", shape, body), queue);
}

}  // namespace tandem::cuda
