// Prepared MatMul, Gemm and GemmSgd. Layouts are final: cuBLASLt can read the operands as they lie.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/cuda/products/lt_product.h"

namespace tandem::cuda {

using LtLibraryPointer = std::shared_ptr<LtLibrary>;

/// Who multiplies: cuBLASLt, and plain sums where it has no algorithm for these layouts or for
/// operands at the addresses that come; or only plain sums.
enum class Multiplier : std::uint8_t { library, plain };

// By the library, these throw Error{runtime} where it fails, Error{usage} where it is missing.
std::unique_ptr<PreparedKernel> prepare_matmul(const LtLibraryPointer& library,
                                               const KernelRequest& request, Multiplier by);
std::unique_ptr<PreparedKernel> prepare_gemm(const LtLibraryPointer& library,
                                             const KernelRequest& request, Multiplier by);
std::unique_ptr<PreparedKernel> prepare_gemm_sgd(const LtLibraryPointer& library,
                                                 const KernelRequest& request, Multiplier by);

}  // namespace tandem::cuda
