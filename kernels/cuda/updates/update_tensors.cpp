// The operands of updates, from a request and from the arguments of a run.
#include "kernels/cuda/updates/update_tensors.h"

#include <utility>

#include "engine/device/kernel_forms.h"

namespace tandem::cuda {

UpdateOperands::UpdateOperands(Gpu gpu, const KernelRequest& r, std::int64_t count, unsigned kept)
    : gpu_(std::move(gpu)),
      sizes_(update_group(*r.node)),
      scalars_(first_scalar(*r.node)),
      kept_(kept),
      grads_(*floats_of(r.inputs[1].type.dtype)) {
  for (std::int64_t i = 0; i < count; ++i) {
    elements_.push_back(r.inputs[static_cast<std::size_t>(i) * sizes_.inputs].type.elements());
  }
  if (sizes_.weight) weights_ = *floats_of(r.outputs[sizes_.results].type.dtype);
}

std::int64_t UpdateOperands::chunks(std::size_t first, std::size_t n) const {
  std::int64_t all = 0;
  for (std::size_t k = first; k < first + n; ++k) all += chunks_of(elements_[k]);
  return all;
}

UpdateTensor UpdateOperands::tensor(const KernelArguments& a, std::size_t k) const {
  UpdateTensor tensor{};
  tensor.master = in_place(a, k, 0, 0);
  for (std::size_t s = 0; s < most_states; ++s) {
    if ((kept_ >> s & 1u) != 0) tensor.states[s] = in_place(a, k, 2 + s, 1 + s);
  }
  tensor.grad = a.inputs[k * sizes_.inputs + 1];
  tensor.weight = sizes_.weight ? a.outputs[k * sizes_.outputs + sizes_.results] : nullptr;
  tensor.elements = elements_[k];
  return tensor;
}

float* UpdateOperands::in_place(const KernelArguments& a, std::size_t k, std::size_t input,
                                std::size_t output) const {
  void* const to = a.outputs[k * sizes_.outputs + output];
  copy_bytes(*gpu_, to, a.inputs[k * sizes_.inputs + input],
             static_cast<std::size_t>(elements_[k]) * sizeof(float), a.queue);
  return static_cast<float*>(to);
}

std::optional<std::string> refuse_update(const KernelRequest& r) {
  const std::size_t scalars = first_scalar(*r.node);
  const UpdateGroup sizes = update_group(*r.node);
  for (std::size_t i = 0; i < scalars; ++i) {
    const std::size_t k = i % sizes.inputs;
    const DType dtype = r.inputs[i].type.dtype;
    if (!r.inputs[i].present || k == sizes.tensors) continue;
    if (k != 1 && dtype != DType::float32) return refused_type(dtype);
    if (k == 1 && !floats_of(dtype)) return "a gradient of " + std::string(name_of(dtype));
    if (k == 1 && dtype != r.inputs[1].type.dtype) return "gradients of several types";
  }
  for (std::size_t k = 0; k < r.outputs.size(); ++k) {
    const std::size_t own = k % sizes.outputs, group = k / sizes.outputs * sizes.inputs;
    const bool made = own == 0 || (own < sizes.results && r.is_present(group + 1 + own));
    if (made && !r.outputs[k].present) return "a result that nothing reads";
  }
  return refuse_scalars(r, scalars);
}

}  // namespace tandem::cuda
