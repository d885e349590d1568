// PyTorch's SGD: g += weight_decay * w; buf = momentum * buf + (1 - dampening) * g, buf = g at step
// 1; g = nesterov ? g + momentum * buf : buf; w -= lr * g.
#include "engine/training/optimizers/optimizer.h"

namespace tandem {

UpdateChoice choose_sgd(const OptimizerOptions& o) {
  return {.op = "SgdUpdate",
          .settings = {{"momentum", o.momentum},
                       {"dampening", o.dampening},
                       {"nesterov", std::int64_t{o.nesterov}},
                       {"weight_decay", o.weight_decay}},
          .takes_rows = o.momentum == 0,
          .rows_need = "without momentum"};
}

}  // namespace tandem
