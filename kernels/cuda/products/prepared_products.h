// Prepared products. Layouts are final: cuBLASLt can read the operands as they lie.
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

/// PackedMatMul of row-major operands: unpacks a strip of the weight at a time into the workspace.
std::unique_ptr<PreparedKernel> prepare_packed_matmul(const LtLibraryPointer& library,
                                                      const KernelRequest& request, Multiplier by);

/// x, the unpacked strip and y's columns of the first product of a PackedMatMul.
struct StripOperands {
  Operand x, strip, y;
};
StripOperands strip_operands(const KernelRequest& request);

}  // namespace tandem::cuda
