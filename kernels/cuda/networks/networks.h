// What the kernels of convolution, pooling and attention on one GPU share, and the parts of their
// list.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "kernels/cuda/kernel_forms.h"
#include "kernels/cuda/networks/plans.h"

namespace tandem::cuda {

class NetworkGpu {
 public:
  explicit NetworkGpu(Gpu gpu) : gpu_(std::move(gpu)) {}

  GpuContext& gpu() const { return *gpu_; }

  /// Null where cuDNN cannot be used. Opens it at the first call.
  std::shared_ptr<Plans> plans();
  /// Why cuDNN does not compute the graph, or nothing.
  std::optional<std::string> refuse(const NetworkGraph& graph, const EngineRules& rules);
  EngineRules rules(bool deterministic) const;

 private:
  const Gpu gpu_;
  std::once_flag opened_;
  std::shared_ptr<Plans> plans_;
};

using Networks = std::shared_ptr<NetworkGpu>;

/// A reason where input 0 is of another type than those.
inline std::optional<std::string> refuse_other_types(const KernelRequest& request) {
  const DType dtype = request.inputs[0].type.dtype;
  if (!is_short_float(dtype)) return "takes no " + std::string(name_of(dtype));
  return std::nullopt;
}

/// A plan as the whole of a kernel's run.
class PlanKernel {
 public:
  static constexpr std::size_t workspace_alignment = 256;  // bytes; kernels get less than that

  PlanKernel(const Networks& networks, const NetworkGraph& graph, const EngineRules& rules);
  std::size_t workspace_bytes() const {
    return run_.workspace_bytes() == 0 ? 0 : run_.workspace_bytes() + workspace_alignment;
  }
  void run(const void* const* addresses, void* workspace, void* queue) noexcept;

 private:
  Networks networks_;
  PlanRun run_;
};

void add_cudnn_convolutions(KernelList& list, const Networks& networks);
void add_plain_convolutions(KernelList& list, const Networks& networks);
void add_poolings(KernelList& list, const Networks& networks);
void add_cudnn_attention(KernelList& list, const Networks& networks);
void add_plain_attention(KernelList& list, const Networks& networks);

}  // namespace tandem::cuda
