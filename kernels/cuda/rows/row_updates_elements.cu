// Updates of rows by kinds of single elements.
#include <type_traits>

#include "kernels/cuda/rows/row_updates.h"
#include "kernels/cuda/rows/row_updates.inl"

namespace tandem::cuda {

template void update_rows(CardContext&, const SgdRule&, const RowUpdateCall&, void*);
template void update_rows(CardContext&, const MomentumRule&, const RowUpdateCall&, void*);
template void update_rows(CardContext&, const AdamRule&, const RowUpdateCall&, void*);
template void update_rows(CardContext&, const AdagradRule&, const RowUpdateCall&, void*);
template void update_rows(CardContext&, const FtrlRule&, const RowUpdateCall&, void*);

}  // namespace tandem::cuda
