// Updates of rows by kinds that need whole rows.
#include <type_traits>

#include "kernels/cuda/rows/row_updates.h"
#include "kernels/cuda/rows/row_updates.inl"

namespace tandem::cuda {

template void update_rows(CardContext&, const RowwiseAdagradRule&, const RowUpdateCall&, void*);
template void update_rows(CardContext&, const GroupFtrlRule&, const RowUpdateCall&, void*);

}  // namespace tandem::cuda
