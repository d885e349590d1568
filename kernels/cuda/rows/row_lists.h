// What add_row_kernels (cuda_kernels.cpp) puts together for rows of tables, a function a file.
#pragma once

#include "kernels/cuda/kernel_forms.h"

namespace tandem::cuda {

void add_lookups(KernelList& list, const Gpu& gpu);         // lookups.cu
void add_bags(KernelList& list, const Gpu& gpu);            // bags.cu
void add_unique_indices(KernelList& list, const Gpu& gpu);  // unique_indices.cpp
void add_marks(KernelList& list, const Gpu& gpu);           // marks.cu
void add_rows_ahead(KernelList& list, const Gpu& gpu);      // rows_ahead.cu
void add_cached_rows(KernelList& list, const Gpu& gpu);     // cached_rows.cu
void add_row_sums(KernelList& list, const Gpu& gpu);        // row_sums.cu
void add_row_updates(KernelList& list, const Gpu& gpu);     // row_update_kernels.cpp

}  // namespace tandem::cuda
