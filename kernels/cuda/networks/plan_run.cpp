// Running a plan without making anything.
#include <algorithm>

#include "engine/graph/error.h"
#include "kernels/cuda/networks/plans.h"

namespace tandem::cuda {

PlanRun::PlanRun(std::shared_ptr<Plans> plans, std::shared_ptr<const Plan> plan)
    : plans_(std::move(plans)),
      plan_(std::move(plan)),
      numbers_(plan_->numbers),
      memory_count_(plan_->ids.size() - plan_->numbers.size()) {
  if (plan_->ids.size() > most_tensors) {
    throw Error(ErrorKind::runtime,
                Diagnostic{.message = "internal error: a cuDNN graph has too many tensors"});
  }
  for (Pack& pack : packs_) pack.descriptor = empty_pack();
}

Descriptor PlanRun::empty_pack() const {
  Descriptor pack(plans_->cudnn(), CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, plan_->ids);
  return pack;
}

cudnnStatus_t PlanRun::fill(Pack& pack, const void* const* addresses, void* workspace) noexcept {
  const Cudnn& cudnn = plans_->cudnn();
  if (pack.used != 0) {  // more sets of addresses than there are packs
    try {
      pack.descriptor = empty_pack();
    } catch (...) {
      return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    }
    pack.used = 0;
  }
  std::copy_n(addresses, memory_count_, pack.addresses.begin());
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    pack.addresses[memory_count_ + i] = &numbers_[i];
  }
  pack.addresses[most_tensors] = workspace;
  const cudnnBackendDescriptor_t descriptor = pack.descriptor.get();
  cudnnStatus_t status = cudnn.cudnnBackendSetAttribute(
      descriptor, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
      static_cast<std::int64_t>(plan_->ids.size()), pack.addresses.data());
  if (status != CUDNN_STATUS_SUCCESS) return status;
  status = cudnn.cudnnBackendSetAttribute(descriptor, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                                          CUDNN_TYPE_VOID_PTR, 1, &workspace);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  status = cudnn.cudnnBackendFinalize(descriptor);
  if (status == CUDNN_STATUS_SUCCESS) pack.used = time_;
  return status;
}

cudnnStatus_t PlanRun::run(const void* const* addresses, void* workspace,
                           cudaStream_t stream) noexcept {
  ++time_;
  Pack* oldest = packs_.data();
  Pack* pack = nullptr;
  for (Pack& candidate : packs_) {
    if (candidate.used != 0 && candidate.addresses[most_tensors] == workspace &&
        std::equal(addresses, addresses + memory_count_, candidate.addresses.begin())) {
      pack = &candidate;
      break;
    }
    if (candidate.used < oldest->used) oldest = &candidate;
  }
  if (pack == nullptr) {
    const cudnnStatus_t status = fill(*oldest, addresses, workspace);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    pack = oldest;
  }
  pack->used = time_;
  const cudnnStatus_t status = plans_->set_stream(stream);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return plans_->cudnn().cudnnBackendExecute(plans_->handle(), plan_->descriptor.get(),
                                             pack->descriptor.get());
}

}  // namespace tandem::cuda
