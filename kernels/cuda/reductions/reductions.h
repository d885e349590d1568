// What the list of reductions is made of, and what its files share.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include "kernels/cuda/kernel_forms.h"
#include "kernels/cuda/launching.h"

namespace tandem::cuda::reductions {

void add_softmax(KernelList& list, const Gpu& gpu);
void add_cross_entropy(KernelList& list, const Gpu& gpu);
void add_likelihood(KernelList& list, const Gpu& gpu);  // and LabelWeights
void add_layer_normalization(KernelList& list, const Gpu& gpu);
void add_layer_normalization_gradient(KernelList& list, const Gpu& gpu);
void add_batch_normalization(KernelList& list, const Gpu& gpu);
void add_dropout(KernelList& list, const Gpu& gpu);

enum class ReductionKind { sum, mean, max };
std::unique_ptr<PreparedKernel> prepare_float_reduction(const KernelRequest& request,
                                                        const Gpu& gpu, ReductionKind kind);
std::unique_ptr<PreparedKernel> prepare_integer_reduction(const KernelRequest& request,
                                                          const Gpu& gpu, ReductionKind kind);

/// Proposes one layout, row-major or channels-last, for all of these inputs and outputs; the others
/// are row-major. The layout that input `like` has comes first.
std::vector<Proposal> propose_maps(const KernelRequest& request, std::size_t like,
                                   std::initializer_list<std::size_t> inputs,
                                   std::initializer_list<std::size_t> outputs);

}  // namespace tandem::cuda::reductions
