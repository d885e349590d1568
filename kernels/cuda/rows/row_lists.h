// What add_row_kernels (list.cpp) puts together: kernels for rows of tables, a function a file.
#pragma once

#include "kernels/cuda/context.h"

namespace tandem::cuda {

void add_look_ups(KernelList& list, const Card& card);        // look_ups.cu
void add_bags(KernelList& list, const Card& card);            // bags.cu
void add_unique_indices(KernelList& list, const Card& card);  // unique_indices.cpp
void add_marks(KernelList& list, const Card& card);           // marks.cu
void add_rows_ahead(KernelList& list, const Card& card);      // rows_ahead.cu
void add_cached_rows(KernelList& list, const Card& card);     // cached_rows.cu
void add_row_sums(KernelList& list, const Card& card);        // row_sums.cu
void add_row_updates(KernelList& list, const Card& card);     // row_update_kernels.cpp

}  // namespace tandem::cuda
