// Updates of a table's rows, behind templates that take long to compile: kinds of single elements
// and of whole rows in a file each.
#pragma once

#include "kernels/cuda/rows/row_table.h"
#include "kernels/cuda/rows/row_walk.h"

namespace tandem::cuda {

/// All of one update but the rule.
struct RowUpdateCall {
  WalkPlan plan;
  StepScalars scalars;
  RowTable table;
  std::int64_t rows = 0;
  bool lazy = true;  // rows in no group stay as they are
  PositionGradients gradients;
  RowGroups groups;
  void* workspace = nullptr;
};

template <class Rule>
void update_rows(CardContext& card, const Rule& rule, const RowUpdateCall& call, void* queue);

extern template void update_rows(CardContext&, const SgdRule&, const RowUpdateCall&, void*);
extern template void update_rows(CardContext&, const MomentumRule&, const RowUpdateCall&, void*);
extern template void update_rows(CardContext&, const AdamRule&, const RowUpdateCall&, void*);
extern template void update_rows(CardContext&, const AdagradRule&, const RowUpdateCall&, void*);
extern template void update_rows(CardContext&, const FtrlRule&, const RowUpdateCall&, void*);
extern template void update_rows(CardContext&, const RowwiseAdagradRule&, const RowUpdateCall&,
                                 void*);
extern template void update_rows(CardContext&, const GroupFtrlRule&, const RowUpdateCall&, void*);

}  // namespace tandem::cuda
