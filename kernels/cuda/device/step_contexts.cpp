#include "kernels/cuda/device/step_contexts.h"

#include <cstring>
#include <new>

#include "kernels/cuda/device/waiting.h"

namespace tandem::cuda {

StepContexts::~StepContexts() {
  for (const Slot& slot : slots_) {
    if (slot.read != nullptr) (void)device_.runtime->destroy_event(slot.read);
  }
  if (own_.address != nullptr) (void)device_.runtime->release(own_.address);
  if (pinned_ != nullptr) (void)device_.runtime->release_pinned(pinned_);
}

void StepContexts::open() {
  if (pinned_ != nullptr) return;
  device_.refuse_in_capture("the host allocates");
  constexpr const char* what = "taking memory for step contexts";
  for (Slot& slot : slots_) {
    if (slot.read == nullptr) device_.check(device_.runtime->make_event(slot.read), what);
  }
  if (own_.address == nullptr)
    device_.check(device_.runtime->allocate(own_.address, block_bytes), what);
  void* pinned = nullptr;
  device_.check(device_.runtime->allocate_pinned(pinned, slots * block_bytes), what);
  pinned_ = static_cast<std::byte*>(pinned);
}

const StepContext* StepContexts::current(const StepContext& context) {
  open();
  renew(own_, context);
  return own_.as_argument();
}

void StepContexts::renew(ContextBlock& block, const StepContext& context) {
  const DeviceStepContext wanted{context.seed, context.step, context.micro_batch,
                                 context.first_sample, device_.errors.word_for(context.error)};
  if (block.holds && std::memcmp(&block.content, &wanted, sizeof(wanted)) == 0) return;
  constexpr const char* what = "renewing a step context";
  Runtime& runtime = *device_.runtime;
  Slot& slot = slots_[next_];
  if (slot.used) {
    device_.refuse_in_capture("the host waits");
    wait_for(device_, slot.read, what);
  }
  std::byte* const from = pinned_ + next_ * block_bytes;
  new (from) DeviceStepContext(wanted);
  block.holds = false;
  device_.check(runtime.copy(block.address, from, sizeof(wanted), stream_), what);
  slot.used = true;
  device_.check(runtime.record(slot.read, stream_), what);
  next_ = (next_ + 1) % slots;
  block.content = wanted;
  block.holds = true;
}

}  // namespace tandem::cuda
