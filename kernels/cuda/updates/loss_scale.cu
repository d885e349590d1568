// LossScale: whether gradients are finite, and with that the factor of updates and the next scale;
// all of it stays on the GPU.
#include "kernels/cuda/launching.h"
#include "kernels/cuda/updates/norms.h"
#include "kernels/cuda/updates/update_lists.h"
#include "kernels/shared/loss_scale.h"

namespace tandem::cuda {
namespace {

constexpr std::size_t first_sum = 4;  // input

struct StepBySum {
  LossScaleSettings settings;
  LossScaleOperands<float> operands;

  TANDEM_HOST_DEVICE void operator()(double squares) const {
    loss_scale_step(settings, operands, squares);
  }
};

std::unique_ptr<PreparedKernel> prepare_loss_scale(const KernelRequest& r, const Gpu& gpu) {
  const std::size_t count = r.inputs.size() - first_sum;
  return prepared(
      [=, settings = loss_scale_settings(r.attributes())](const KernelArguments& a) {
        const StepBySum step{settings, LossScaleOperands<float>(a.inputs, a.outputs)};
        launch_sum_of_scalars(*gpu, "loss scale", a, first_sum, count, step);
      },
      scalar_sum_workspace(count));
}

}  // namespace

void add_loss_scale_kernels(KernelList& list, const Gpu& gpu) {
  add_row_major(list, "cuda.loss_scale", "LossScale", only_float32({0}),
                on(gpu, prepare_loss_scale));
}

}  // namespace tandem::cuda
