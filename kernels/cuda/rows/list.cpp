// The GPU's kernels for rows of tables: lookups, sums of gradients by row, updates of rows.
#include "kernels/cuda/rows/row_lists.h"

namespace tandem::cuda {

void add_row_kernels(KernelList& list, const Gpu& gpu) {
  add_lookups(list, gpu);
  add_bags(list, gpu);
  add_unique_indices(list, gpu);
  add_marks(list, gpu);
  add_rows_ahead(list, gpu);
  add_cached_rows(list, gpu);
  add_row_sums(list, gpu);
  add_row_updates(list, gpu);
}

}  // namespace tandem::cuda
