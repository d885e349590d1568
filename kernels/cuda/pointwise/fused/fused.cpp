// The kernel of fused bodies: source by fused_source.cpp, code by NVRTC. Emulated, the body runs
// node by node on the reference kernels.
#include <algorithm>
#include <cassert>

#include "engine/operators/operator.h"
#include "kernels/cuda/pointwise/fused/fused_plan.h"
#include "kernels/cuda/pointwise/fused/fused_programs.h"
#include "kernels/cuda/pointwise/pointwise.h"
#include "kernels/reference/reference_kernels.h"

namespace tandem::cuda {
namespace {

/// What a launch needs to be emulated: the request, for the reference kernel.
class HostFused {
 public:
  explicit HostFused(const KernelRequest& request)
      : node_(*request.node), inputs_(request.inputs), outputs_(request.outputs) {
    for (Operand& input : inputs_) input.constant = nullptr;  // may not live as long
  }

  void run(const FusedArguments& arguments) const {
    KernelRequest request;
    request.node = &node_;
    request.inputs = inputs_;
    request.outputs = outputs_;
    const DeviceFacts facts;
    request.facts = &facts;
    static const KernelList kernels = reference_kernels();
    const Kernel* kernel = choose_kernel(kernels, request);
    assert(kernel != nullptr);
    const auto prepared = kernel->prepare(request);
    std::vector<std::max_align_t> workspace(prepared->workspace_bytes / sizeof(std::max_align_t) +
                                            1);
    prepared->run({const_cast<const void* const*>(arguments.operands),
                   arguments.operands + inputs_.size(), workspace.data(), nullptr});
  }

 private:
  Node node_;
  std::vector<Operand> inputs_, outputs_;
};

void emulate_fused(const LaunchShape&, const void* body) {
  const auto& arguments = *static_cast<const FusedArguments*>(body);
  static_cast<const HostFused*>(arguments.host)->run(arguments);
}

class FusedKernel final : public PreparedKernel {
 public:
  FusedKernel(const KernelRequest& request, const FusedBody& body, const Gpu& gpu,
              std::shared_ptr<FusedPrograms> programs)
      : gpu_(gpu),
        programs_(std::move(programs)),
        host_(request),
        plan_(plan_fused(request, body, gpu->properties.multiprocessors)),
        inputs_(request.inputs.size()),
        outputs_(request.outputs.size()) {
    if (plan_.elements > 0) entry_ = programs_->kernel(plan_.source);
    if (body.reduction) {
      result_ = body.reduction->output;
      result_type_ = request.outputs[static_cast<std::size_t>(result_)].type.dtype;
    }
    workspace_bytes = plan_.workspace_bytes();
  }

  void run(const KernelArguments& a) noexcept override {
    if (plan_.elements > 0) {
      const FusedPlan::Way& way = is_wide(a) ? plan_.wide : plan_.narrow;
      FusedArguments arguments = way.arguments;
      for (std::size_t i = 0; i < inputs_; ++i)
        arguments.operands[i] = const_cast<void*>(a.inputs[i]);
      std::copy_n(a.outputs, outputs_, arguments.operands + inputs_);
      if (plan_.finish.parts > 0) arguments.partial = static_cast<double*>(a.workspace);
      arguments.host = &host_;
      Launch launch;
      launch.name = "fused";
      launch.entry = entry_;
      launch.emulate = emulate_fused;
      launch.body = &arguments;
      launch.body_bytes = sizeof arguments;
      launch.shape = way.shape;
      gpu_->launch(launch, a.queue);
    }
    if (result_ < 0 || plan_.finish.elements == 0 || a.outputs[result_] == nullptr) return;
    if (plan_.elements > 0 && plan_.finish.parts == 0) return;
    FinishArguments finish = plan_.finish;
    finish.partial = static_cast<const double*>(a.workspace);
    finish.result = a.outputs[result_];
    const LaunchShape shape = spread(finish.elements, gpu_->properties.multiprocessors);
    launch_finish(*gpu_, finish, result_type_, shape, a.queue, plan_.elements > 0);
  }

 private:
  bool is_wide(const KernelArguments& a) const {
    if (!plan_.wide.possible) return false;
    for (std::size_t k = 0; k < plan_.alignment.size(); ++k) {
      const void* address = k < inputs_ ? a.inputs[k] : a.outputs[k - inputs_];
      if (!is_aligned(address, plan_.alignment[k])) return false;
    }
    return true;
  }

  Gpu gpu_;
  std::shared_ptr<FusedPrograms> programs_;
  HostFused host_;
  FusedPlan plan_;
  std::size_t inputs_, outputs_;
  const void* entry_ = nullptr;
  int result_ = -1;
  DType result_type_ = DType::float32;
};

std::optional<std::string> refuse(const KernelRequest& request, const Gpu& gpu) {
  if (gpu->libraries->nvrtc() == nullptr) {
    return "NVRTC is missing, which compiles fused bodies at run time";
  }
  FusedBody body;
  if (auto reason = read_body(request, body)) return reason;
  return refuse_axes(body.space);
}

FusedBody body_of(const KernelRequest& request) {
  FusedBody body;
  [[maybe_unused]] const auto reason = read_body(request, body);
  assert(!reason);
  return body;
}

}  // namespace

void add_fused_kernels(KernelList& list, const Gpu& gpu) {
  list.push_back({"cuda.fused", "Fused", on(gpu, refuse),
                  [](const KernelRequest& r) {
                    const FusedBody body = body_of(r);
                    const int reduced = body.reduction ? body.reduction->output : -1;
                    return propose_one_order(r, body.space, reduced);
                  },
                  [gpu, programs = std::make_shared<FusedPrograms>(gpu)](
                      const KernelRequest& r) -> std::unique_ptr<PreparedKernel> {
                    return std::make_unique<FusedKernel>(r, body_of(r), gpu, programs);
                  }});
}

}  // namespace tandem::cuda
