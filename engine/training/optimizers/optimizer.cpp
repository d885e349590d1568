#include "engine/training/optimizers/optimizer.h"

#include "engine/operators/rows.h"

namespace tandem {

ValueId add_moment(GraphBuilder& g, const State& parameter, const std::string& name, double start,
                   std::optional<Shape> shape) {
  State state;
  state.name = parameter.name + "/" + name;
  state.kind = StateKind::optimizer;
  state.parameter = parameter.name;
  state.start = HostTensor(TensorType{DType::float32, shape.value_or(parameter.start.shape())});
  state.starts_at_zero = start == 0;
  if (start != 0) {
    for (float& value : state.start.as<float>()) value = static_cast<float>(start);
  }
  return g.state(std::move(state));
}

UpdateChoice choose_update(const OptimizerOptions& options) {
  switch (options.kind) {
    case OptimizerKind::sgd:
      return choose_sgd(options);
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
    case OptimizerKind::lazy_adam:
      return choose_adam(options);
    case OptimizerKind::adagrad:
    case OptimizerKind::rowwise_adagrad:
      return choose_adagrad(options);
    case OptimizerKind::ftrl:
    case OptimizerKind::group_ftrl:
      return choose_ftrl(options);
  }
  return {};
}

const std::vector<ValueId>& Updates::groups_of(const UpdateRequest& request) {
  const std::vector<ValueId> ids =
      request.touched ? std::vector<ValueId>{request.touched} : request.rows->ids;
  const std::int64_t rows = request.parameter.start.shape()[0];
  for (const Grouped& known : grouped_) {
    if (known.ids == ids && known.rows == rows) return known.outputs;
  }
  std::vector<ValueId> outputs = request.touched ? g_.node("TouchedRows", ids)
                                                 : g_.node("UniqueIndices", ids, {{"rows", rows}});
  outputs.resize(UniqueOutputs::inverse);
  return grouped_.emplace_back(Grouped{ids, rows, std::move(outputs)}).outputs;
}

std::vector<ValueId> Updates::gradients_of(const UpdateRequest& request) {
  return request.touched ? std::vector<ValueId>{request.gradient} : request.rows->dy;
}

ValueId Updates::sum_of_squares(const UpdateRequest& request) {
  if (!is_by_rows(request)) return g_.add_node("SumOfSquares", {request.gradient});
  const Shape& shape = request.parameter.start.shape();
  const std::vector<ValueId>& rows = groups_of(request);
  std::vector<ValueId> inputs{rows[UniqueOutputs::order], rows[UniqueOutputs::offsets],
                              rows[UniqueOutputs::count]};
  for (ValueId dy : gradients_of(request)) inputs.push_back(dy);
  return g_.add_node("RowsSumOfSquares", std::move(inputs),
                     {{"columns", element_count(shape) / shape[0]}});
}

void Updates::add(const UpdateRequest& request, const UpdateScalars& scalars) {
  g_.set_scope({"optimizer." + request.parameter.name, Phase::update, {}});
  const UpdateChoice choice = choose_update(request.options);
  const UpdateKind& kind = *find_update_kind(choice.op);
  const bool has_states = kind.uses_states(choice.settings);
  const ValueId master = request.parameter.initial;
  std::vector<ValueId> states(kind.states.size());
  for (std::size_t k = 0; has_states && k < states.size(); ++k) {
    const double start = k < choice.starts.size() ? choice.starts[k] : 0;
    states[k] = add_moment(g_, request.parameter, kind.states[k], start,
                           kind.state_shape(request.parameter.start.shape()));
  }
  const auto append = [](std::vector<ValueId>& to, const std::vector<ValueId>& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  std::vector<ValueId> inputs{master};
  Attributes attributes = choice.settings;
  if (is_by_rows(request)) {
    attributes.set("op", choice.op);
    const bool still = kind.keeps_still != nullptr && kind.keeps_still(choice.settings);
    attributes.set("lazy", std::int64_t{choice.lazy || still});
    append(inputs, states);
    append(inputs, groups_of(request));
  } else {
    inputs.push_back(request.gradient);
    append(inputs, states);
  }
  append(inputs, {request.lr, scalars.step, scalars.scale, scalars.skip});
  if (is_by_rows(request)) append(inputs, gradients_of(request));
  const std::vector<ValueId> made =
      g_.node(is_by_rows(request) ? "RowsUpdate" : choice.op, std::move(inputs), attributes);
  g_.write_state(master, made[0]);
  for (std::size_t k = 0; has_states && k < states.size(); ++k) {
    g_.write_state(states[k], made[1 + k]);
  }
}

}  // namespace tandem
