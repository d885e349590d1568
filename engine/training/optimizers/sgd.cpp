// PyTorch's SGD: g += weight_decay * w; buf = momentum * buf + (1 - dampening) * g, buf = g at step
// 1; g = nesterov ? g + momentum * buf : buf; w -= lr * g.
#include "engine/training/optimizers/optimizer.h"

namespace tandem {

void add_sgd_update(GraphBuilder& g, const UpdateRequest& request, const UpdateScalars& scalars) {
  const OptimizerOptions& o = request.options;
  const ValueId master = request.parameter.initial;
  ValueId buffer;
  if (o.momentum != 0) buffer = add_moment(g, request.parameter, "momentum_buffer");
  const std::vector<ValueId> made = g.node(
      "SgdUpdate",
      {master, request.gradient, buffer, request.lr, scalars.step, scalars.scale, scalars.skip},
      {{"momentum", o.momentum},
       {"dampening", o.dampening},
       {"nesterov", std::int64_t{o.nesterov}},
       {"weight_decay", o.weight_decay}});
  g.write_state(master, made[0]);
  if (buffer) g.write_state(buffer, made[1]);
}

}  // namespace tandem
