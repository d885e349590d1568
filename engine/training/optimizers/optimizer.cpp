#include "engine/training/optimizers/optimizer.h"

namespace tandem {

ValueId add_moment(GraphBuilder& g, const State& parameter, const std::string& name) {
  State state;
  state.name = parameter.name + "/" + name;
  state.kind = StateKind::optimizer;
  state.parameter = parameter.name;
  state.start = HostTensor(TensorType{DType::float32, parameter.start.shape()});
  return g.state(std::move(state));
}

void add_update(GraphBuilder& g, const UpdateRequest& request, const UpdateScalars& scalars) {
  g.set_scope({"optimizer." + request.parameter.name, Phase::update, {}});
  switch (request.options.kind) {
    case OptimizerKind::sgd:
      return add_sgd_update(g, request, scalars);
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return add_adam_update(g, request, scalars);
  }
}

}  // namespace tandem
