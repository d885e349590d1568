// The card's kernels for rows of tables: look-ups, sums of gradients by row, updates of rows.
#include "kernels/cuda/rows/row_lists.h"

namespace tandem::cuda {

void add_row_kernels(KernelList& list, const Card& card) {
  add_look_ups(list, card);
  add_bags(list, card);
  add_unique_indices(list, card);
  add_marks(list, card);
  add_rows_ahead(list, card);
  add_cached_rows(list, card);
  add_row_sums(list, card);
  add_row_updates(list, card);
}

}  // namespace tandem::cuda
