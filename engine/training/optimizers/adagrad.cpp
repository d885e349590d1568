// PyTorch's Adagrad (Duchi et al. 2011): sum += g^2; w -= lr / (1 + (t - 1) lr_decay) * g /
// (sqrt(sum) + eps). rowwise_adagrad (FBGEMM): one sum for each row of a table, of the mean of g^2.
#include "engine/training/optimizers/optimizer.h"

namespace tandem {

UpdateChoice choose_adagrad(const OptimizerOptions& o) {
  return {
      .op = o.kind == OptimizerKind::adagrad ? "AdagradUpdate" : "RowwiseAdagradUpdate",
      .settings = {{"epsilon", o.eps}, {"weight_decay", o.weight_decay}, {"lr_decay", o.lr_decay}},
      .starts = {o.initial_accumulator},
      .takes_rows = o.weight_decay == 0,
      .rows_need = "without weight_decay"};
}

}  // namespace tandem
