// The GPUs of this machine, looked for when a policy uses one: others shall not start a driver.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "kernels/cuda_devices.h"

namespace tandem::api {

/// Copies look together, once.
class KnownGpus {
 public:
  explicit KnownGpus(std::function<CudaReport()> look = cuda_gpus) : look_(std::move(look)) {}
  const CudaReport& report() const {
    if (!*found_) *found_ = look_();
    return **found_;
  }

 private:
  std::function<CudaReport()> look_;
  std::shared_ptr<std::optional<CudaReport>> found_ = std::make_shared<std::optional<CudaReport>>();
};

}  // namespace tandem::api
