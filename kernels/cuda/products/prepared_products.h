// Prepared MatMul, Gemm and GemmSgd. Layouts are final: cuBLASLt can take the operands as they lie.
#pragma once

#include <memory>

#include "kernels/cuda/products/lt_product.h"

namespace tandem::cuda {

using LtLibraryPointer = std::shared_ptr<LtLibrary>;

// These throw Error{runtime} where cuBLASLt has no algorithm or fails, Error{usage} where it is
// missing.
std::unique_ptr<PreparedKernel> prepare_matmul(const LtLibraryPointer& library,
                                               const KernelRequest& request);
std::unique_ptr<PreparedKernel> prepare_gemm(const LtLibraryPointer& library,
                                             const KernelRequest& request);
std::unique_ptr<PreparedKernel> prepare_gemm_sgd(const LtLibraryPointer& library,
                                                 const KernelRequest& request);

/// MatMul of integers and float64, in any layouts.
std::unique_ptr<PreparedKernel> prepare_plain_matmul(const Card& card,
                                                     const KernelRequest& request);

}  // namespace tandem::cuda
