// The GPUs of this machine, queried only when a policy uses one: other runs must not start a
// driver.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "kernels/cuda_devices.h"

namespace tandem::api {

/// Copies share one query, which is made once.
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
