// Updates of rows: a part of the rules.
#include "kernels/cuda/rows/row_updates.inl"

namespace tandem::cuda {

template RowUpdater row_updater_of_part<3>(std::string_view, const Attributes&);

}  // namespace tandem::cuda
