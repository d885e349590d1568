// The GPU's kernels for reductions, softmax, losses over labels, normalisation and dropout.
#include <algorithm>

#include "engine/device/map_kinds.h"
#include "kernels/cuda/reductions/reductions.h"

namespace tandem::cuda {
namespace reductions {

std::vector<Proposal> propose_maps(const KernelRequest& request, std::size_t like,
                                   std::initializer_list<std::size_t> inputs,
                                   std::initializer_list<std::size_t> outputs) {
  std::vector<Proposal> proposals;
  for (LayoutConstraint::Kind kind : map_kinds(request.inputs[like])) {
    Proposal proposal;
    proposal.inputs.assign(request.inputs.size(),
                           LayoutConstraint{LayoutConstraint::Kind::row_major, {}});
    for (std::size_t i : inputs) proposal.inputs[i].kind = kind;
    if (outputs.size() > 0)
      proposal.outputs.assign(std::max(outputs) + 1,
                              LayoutConstraint{LayoutConstraint::Kind::row_major, {}});
    for (std::size_t i : outputs) proposal.outputs[i].kind = kind;
    proposals.push_back(std::move(proposal));
  }
  return proposals;
}

namespace {

// Refuses more axes than a Walk has.
std::optional<std::string> refuse_reduction(const KernelRequest& request) {
  const TensorType& x = request.inputs[0].type;
  if (x.dtype == DType::float64) return "element type float64";
  if (x.rank() > 8) return "more than 8 axes";
  return std::nullopt;
}

void add_reduces(KernelList& list, const Gpu& gpu) {
  const auto add = [&](const char* name, const char* op, ReductionKind kind) {
    list.push_back(
        {name, op, refuse_reduction, propose_any_strides, [gpu, kind](const KernelRequest& r) {
           return is_float(r.inputs[0].type.dtype) ? prepare_float_reduction(r, gpu, kind)
                                                   : prepare_integer_reduction(r, gpu, kind);
         }});
  };
  add("cuda.reduce_sum", "ReduceSum", ReductionKind::sum);
  add("cuda.reduce_mean", "ReduceMean", ReductionKind::mean);
  add("cuda.reduce_max", "ReduceMax", ReductionKind::max);
}

}  // namespace
}  // namespace reductions

void add_reduction_kernels(KernelList& list, const Gpu& gpu) {
  reductions::add_reduces(list, gpu);
  reductions::add_softmax(list, gpu);
  reductions::add_cross_entropy(list, gpu);
  reductions::add_likelihood(list, gpu);
  reductions::add_layer_normalization(list, gpu);
  reductions::add_layer_normalization_gradient(list, gpu);
  reductions::add_batch_normalization(list, gpu);
  reductions::add_dropout(list, gpu);
}

}  // namespace tandem::cuda
