// Packed weights (engine/operators/packed/packing.h) as float32 in a GPU's memory.
#pragma once

#include <cstdint>

#include "engine/device/kernel.h"
#include "kernels/cuda/context.h"
#include "kernels/reference/packed_operands.h"

namespace tandem::cuda {

/// Rows and columns of a packed matrix.
struct PackedPart {
  std::int64_t first_row = 0, rows = 0;
  std::int64_t first_column = 0, columns = 0;
};

/// to[rows, columns] = the numbers of that part; the addresses of `matrix` are the GPU's.
void unpack_numbers(GpuContext& gpu, const PackedMatrix& matrix, const PackedPart& part, float* to,
                    void* queue) noexcept;

/// A reason where the node computes other numbers than float32.
std::optional<std::string> refuse_packed(const KernelRequest& request);

std::unique_ptr<PreparedKernel> prepare_unpack(const KernelRequest& request, const Gpu& gpu);

}  // namespace tandem::cuda
