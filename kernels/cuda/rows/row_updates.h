// Updates of a table's rows; the templates, which take long to compile, are in other files.
#pragma once

#include <functional>
#include <string_view>

#include "kernels/cuda/rows/row_table.h"
#include "kernels/cuda/rows/row_walk.h"

namespace tandem::cuda {

/// Everything of one update but the rule.
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

/// One update by rows: the rule with its settings.
using RowUpdater = std::function<void(GpuContext& gpu, const RowUpdateCall& call, void* queue)>;
/// The updater; nothing where the rule is in another part. `op` is that of an update.
template <int part>
RowUpdater row_updater_of_part(std::string_view op, const Attributes& settings);

}  // namespace tandem::cuda
