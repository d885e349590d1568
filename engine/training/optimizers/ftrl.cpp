// FTRL-Proximal (McMahan et al. 2013, "Ad Click Prediction: a View from the Trenches") and its
// group form; formulas in engine/operators/ftrl_update.cpp. Rows that a batch does not look up stay
// as they are, as in TensorFlow's and MindSpore's sparse forms.
#include "engine/training/config/config_names.h"
#include "engine/training/optimizers/optimizer.h"

namespace tandem {

UpdateChoice choose_ftrl(const OptimizerOptions& o) {
  return {.op = o.kind == OptimizerKind::ftrl ? "FtrlUpdate" : "GroupFtrlUpdate",
          .settings = {{"l1", o.l1},
                       {"l2", o.l2},
                       {"beta", o.beta},
                       {"l2_shrinkage", o.l2_shrinkage},
                       {"lr_power", o.lr_power},
                       {"l21", o.l21},
                       {"dialect", std::string(choice_name(o.dialect))}},
          .starts = {o.initial_accumulator},
          .lazy = true};
}

}  // namespace tandem
