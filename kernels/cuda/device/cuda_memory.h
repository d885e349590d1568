// Memory of a CUDA device, and memory of the host that it reaches.
#pragma once

#include <memory>

#include "kernels/cuda/device/device_shared.h"

namespace tandem::cuda {

class CudaMemory final : public Memory {
 public:
  /// Throws Error{does_not_fit}.
  CudaMemory(std::shared_ptr<DeviceShared> device, std::size_t bytes)
      : device_(std::move(device)), address_(device_->allocate(bytes)), bytes_(bytes) {
    if (device_->monitor() != nullptr) device_->monitor()->forget(address_, bytes);
  }
  ~CudaMemory() override { device_->release(address_); }
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  void* address() override { return address_; }
  std::size_t bytes() const override { return bytes_; }

 private:
  const std::shared_ptr<DeviceShared> device_;
  void* const address_;
  const std::size_t bytes_;
};

class CudaPinnedRange final : public PinnedRange {
 public:
  CudaPinnedRange(std::shared_ptr<DeviceShared> device, void* address)
      : device_(std::move(device)), address_(address) {}
  ~CudaPinnedRange() override { (void)device_->runtime->unpin(address_); }
  CudaPinnedRange(const CudaPinnedRange&) = delete;
  CudaPinnedRange& operator=(const CudaPinnedRange&) = delete;

 private:
  const std::shared_ptr<DeviceShared> device_;
  void* const address_;
};

}  // namespace tandem::cuda
