// What convolution, pooling and attention share on a GPU: cuDNN's plans as their kernels run them.
#include "kernels/cuda/networks/networks.h"

#include "engine/graph/error.h"

namespace tandem::cuda {

std::shared_ptr<Plans> NetworkGpu::plans() {
  std::call_once(opened_, [&] {
    const Cudnn* cudnn = gpu_->libraries ? gpu_->libraries->cudnn() : nullptr;
    if (cudnn == nullptr) return;
    const GpuProperties& properties = gpu_->properties;
    const std::string name = std::to_string(properties.major) + "." +
                             std::to_string(properties.minor) + " " + properties.name + ", " +
                             std::to_string(properties.multiprocessors) + " multiprocessors";
    plans_ = std::make_shared<Plans>(*cudnn, name, gpu_->cache_folder);
  });
  return plans_;
}

std::optional<std::string> NetworkGpu::refuse(const NetworkGraph& graph, const EngineRules& rules) {
  const std::shared_ptr<Plans> all = plans();
  if (!all) return "cuDNN cannot be used";
  gpu_->runtime->set_gpu(gpu_->gpu);
  const EngineCount count = all->count(graph, rules);
  if (count.allowed > 0) return std::nullopt;
  if (!count.problem.empty()) return "cuDNN takes no such operation: " + count.problem;
  if (count.offered == 0) return "cuDNN has no engine for it";
  return "cuDNN has no engine for it that is " +
         std::string(rules.deterministic ? "deterministic and " : "") + "exact enough";
}

EngineRules NetworkGpu::rules(bool deterministic) const {
  EngineRules rules;
  rules.tensor_cores = gpu_->allow_tf32;
  rules.deterministic = deterministic;
  return rules;
}

namespace {

PlanRun run_of(NetworkGpu& networks, const NetworkGraph& graph, const EngineRules& rules) {
  const std::shared_ptr<Plans> plans = networks.plans();
  if (!plans) {
    throw Error(ErrorKind::runtime,
                Diagnostic{.message = "internal error: a cuDNN kernel was chosen without cuDNN"});
  }
  networks.gpu().runtime->set_gpu(networks.gpu().gpu);
  return {plans, plans->plan(graph, rules)};
}

}  // namespace

PlanKernel::PlanKernel(const Networks& networks, const NetworkGraph& graph,
                       const EngineRules& rules)
    : networks_(networks), run_(run_of(*networks, graph, rules)) {}

void PlanKernel::run(const void* const* addresses, void* workspace, void* queue) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(workspace);
  void* const aligned = reinterpret_cast<void*>((at + workspace_alignment - 1) /
                                                workspace_alignment * workspace_alignment);
  const cudnnStatus_t status = run_.run(addresses, aligned, static_cast<cudaStream_t>(queue));
  if (status == CUDNN_STATUS_SUCCESS) return;
  try {
    networks_->gpu().fail("cuDNN", failure_text(networks_->plans()->cudnn(), status));
  } catch (...) {  // no memory left for the words
    networks_->gpu().fail("cuDNN", "");
  }
}

}  // namespace tandem::cuda
