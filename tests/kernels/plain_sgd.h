// Plain SGD of rows, which makes their gradients visible.
#pragma once

#include "engine/optimizers/settings.h"
#include "kernels/cpu/rows/row_rule.h"

namespace tandem::testing {

/// w -= lr * gradient
inline RowStep plain_sgd(double lr) {
  return row_factors("SgdUpdate", attributes_of(Sgd::Settings{})).step(lr, 1, 1.0);
}

}  // namespace tandem::testing
