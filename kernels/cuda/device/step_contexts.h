// Step contexts in the memory of the GPU: kernels get the address of a copy, which is renewed on
// the stream when the content has changed.
#pragma once

#include <array>
#include <cstddef>

#include "kernels/cuda/device/device_shared.h"

namespace tandem::cuda {

static_assert(sizeof(StepContext) == sizeof(DeviceStepContext));
static_assert(sizeof(ErrorWord) == sizeof(DeviceErrorWord));

/// A copy on the GPU, with what the last copy onto it holds.
struct ContextBlock {
  void* address = nullptr;
  DeviceStepContext content = {};
  bool holds = false;

  const StepContext* as_argument() const { return static_cast<const StepContext*>(address); }
};

/// The step contexts of one stream. Copies take their content from pinned slots, used in turn: one
/// that a copy still reads is not overwritten, the host waits.
class StepContexts {
 public:
  static constexpr std::size_t slots = 16;
  static constexpr std::size_t block_bytes = 64;  // bytes of a slot, and of a block on the GPU

  StepContexts(DeviceShared& device, cudaStream_t stream) : device_(device), stream_(stream) {}
  ~StepContexts();
  StepContexts(const StepContexts&) = delete;
  StepContexts& operator=(const StepContexts&) = delete;

  /// Takes the memory that it needs. Not while capturing.
  void open();
  /// The address of `context` for what is enqueued on the stream next.
  const StepContext* current(const StepContext& context);
  /// Brings the content onto a block that only this stream reads and writes.
  void renew(ContextBlock& block, const StepContext& context);

 private:
  struct Slot {
    cudaEvent_t read = nullptr;  // the copy from it is done
    bool used = false;
  };

  DeviceShared& device_;
  const cudaStream_t stream_;
  std::byte* pinned_ = nullptr;
  std::array<Slot, slots> slots_;
  std::size_t next_ = 0;
  ContextBlock own_;
};

}  // namespace tandem::cuda
