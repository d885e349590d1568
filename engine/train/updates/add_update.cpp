#include "engine/train/updates/add_update.h"

#include "engine/graph/host_memory.h"
#include "engine/graph/shard_conversion.h"
#include "engine/operators/grouped_update.h"
#include "engine/operators/tables/rows.h"
#include "engine/optimizers/composed.h"
#include "engine/train/updates/filled_tensor.h"
#include "engine/train/updates/gradient_clipping.h"

namespace tandem {

State state_of(const State& parameter, const std::string& name) {
  State state;
  state.name = parameter.name + "/" + name;
  state.kind = StateKind::optimizer;
  state.parameter = parameter.name;
  if (const auto* cached = parameter.derived.as<CachedRows>())
    state.derived = CachedRows{cached->of + "/" + name, cached->rows};
  return state;
}

void share_like(State& state, const State& parameter, std::int64_t each) {
  if (!parameter.shard) return;
  StateShard shard = *parameter.shard;
  const TensorType& own = state.start.type();
  const Shape& part = parameter.start.shape();
  if (shard.keeps_rows()) {
    if (own.rank() == 0 || own.shape[0] != part[0]) return;
    const std::int64_t rows = shard.whole.shape[0];
    shard.whole.shape = own.shape;
    shard.whole.shape[0] = rows;
  } else if (each > 1 && shard.kind == ShardKind::elements) {
    shard.whole.shape = {(shard.whole.elements() + each - 1) / each};
    shard.unit = (shard.unit + each - 1) / each;
  } else if (own.shape != part) {
    return;
  }
  shard.whole.dtype = own.dtype;
  state.shard = std::move(shard);
}

ValueId add_moment(GraphBuilder& g, const State& parameter, const std::string& name, double start,
                   std::optional<TensorType> given, std::int64_t each) {
  State state = state_of(parameter, name);
  state.starts_at_zero = start == 0;
  const TensorType type = given.value_or(TensorType{DType::float32, parameter.start.shape()});
  try {
    state.start =
        start == 0 ? HostTensor(type) : filled_tensor(type.shape, static_cast<float>(start));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::does_not_fit) throw;
    Diagnostic d;
    d.path = state.name;
    d.message = "the host has no memory for this state of the optimizer";
    d.got = to_string(type) + ", " + std::to_string(type.bytes()) + " bytes";
    d.fix = "give the parameter fewer rows, parameters.shape = [ { at = \"" + state.parameter +
            "\", rows = 100000 } ], or a kind with fewer states, optimizer.groups = [ { at = \"" +
            state.parameter + "\", kind = \"sgd\" } ]";
    fail_without_memory(std::move(d));
  }
  share_like(state, parameter, each);
  return g.state(std::move(state));
}

const std::vector<ValueId>& Updates::groups_of(const UpdateRequest& request) {
  const std::vector<ValueId> ids =
      request.touched ? std::vector<ValueId>{request.touched} : request.rows->ids;
  const std::int64_t rows = request.parameter.start.shape()[0];
  for (const Grouped& known : grouped_) {
    if (known.ids == ids && known.rows == rows) return known.outputs;
  }
  // Reports nothing: the lookups report ids of no row.
  std::vector<ValueId> outputs =
      request.touched ? g_.node("TouchedRows", ids)
                      : g_.node("UniqueIndices", ids, {{"rows", rows}, {"quiet", std::int64_t{1}}});
  outputs.resize(UniqueOutputs::inverse);
  return grouped_.emplace_back(Grouped{ids, rows, std::move(outputs)}).outputs;
}

void Updates::append_gradients(const UpdateRequest& request, std::vector<ValueId>& inputs,
                               Attributes& attributes) {
  if (request.touched) {
    inputs.push_back(request.gradient);
    return;
  }
  const RowGradient& rows = *request.rows;
  inputs.insert(inputs.end(), rows.dy.begin(), rows.dy.end());
  Ints weighted;
  bool plain = true;
  for (std::size_t k = 0; k < rows.dy.size(); ++k) {
    const ValueId weights = rows.weights[k];
    weighted.push_back(weights ? 1 : 0);
    if (weights) inputs.push_back(weights);
    plain = plain && !weights && rows.bags[k] == 1;
  }
  if (plain) return;
  attributes.set("bags", rows.bags);
  attributes.set("weighted", std::move(weighted));
}

ValueId Updates::sum_of_squares(const UpdateRequest& request) {
  // The ids of a cache are grouped where the cache is, and so this node is there, too.
  const GraphBuilder::Scope scope = g_.scope();
  if (request.parameter.derived.is<CachedRows>()) g_.set_scope(update_scope(request.parameter));
  const ValueId sum = own_sum_of_squares(request);
  g_.set_scope(scope);
  return sum;
}

ValueId Updates::own_sum_of_squares(const UpdateRequest& request) {
  if (!is_by_rows(request)) return g_.add_node("SumOfSquares", {request.gradient});
  const Shape& shape = request.parameter.start.shape();
  const std::vector<ValueId>& rows = groups_of(request);
  std::vector<ValueId> inputs{rows[UniqueOutputs::order], rows[UniqueOutputs::offsets],
                              rows[UniqueOutputs::count]};
  Attributes attributes{{"columns", element_count(shape) / shape[0]}};
  append_gradients(request, inputs, attributes);
  return g_.add_node("RowsSumOfSquares", std::move(inputs), std::move(attributes));
}

std::vector<ValueId> Updates::add_node(const UpdateRequest& request, const std::string& op,
                                       Attributes settings, const std::vector<ValueId>& states,
                                       bool lazy, const UpdateScalars& scalars) {
  const auto append = [](std::vector<ValueId>& to, const std::vector<ValueId>& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  std::vector<ValueId> inputs{request.parameter.initial};
  if (is_by_rows(request)) {
    settings.set("op", op);
    settings.set("lazy", std::int64_t{lazy});
    append(inputs, states);
    append(inputs, groups_of(request));
  } else {
    inputs.push_back(request.gradient);
    append(inputs, states);
  }
  append(inputs, {request.lr, scalars.step, scalars.scale, scalars.skip});
  if (is_by_rows(request)) append_gradients(request, inputs, settings);
  return g_.node(is_by_rows(request) ? "RowsUpdate" : op, std::move(inputs), std::move(settings));
}

ValueId Updates::compose(const UpdateRequest& request, const UpdateKind& kind,
                         const Attributes& settings, const std::vector<ValueId>& states,
                         const UpdateScalars& scalars, const Gather& gather) {
  const State whole = *g_.graph().find_state(request.parameter.name);
  const auto is_number = [&](ValueId value, double number) {
    return g_.graph().is_constant(value) && g_.graph().value(value).constant->number(0) == number;
  };
  g_.set_scope({composed_path(whole.name), Phase::update, {}});
  ValueId gradient = g_.cast(request.gradient, g_.dtype(whole.initial));
  if (!is_number(scalars.scale, 1)) gradient = g_.mul(gradient, scalars.scale);
  ComposedStep step{.g = g_,
                    .master = request.parameter.initial,
                    .gradient = gradient,
                    .states = states,
                    .lr = request.lr,
                    .number = scalars.step,
                    .skip = is_number(scalars.skip, 0) ? ValueId{} : scalars.skip,
                    .whole_master = whole.initial,
                    .unit_axes = axes_of_units(g_.graph(), whole),
                    .whole = [&](ValueId part) { return gather ? gather(part) : part; }};
  ComposedResult made = kind.compose(settings, step);
  const auto assign = [&](ValueId state, ValueId value) {
    const NodeId producer = g_.graph().value(value).producer;
    const bool is_update = producer && is_optimizer_update(g_.graph().node(producer));
    g_.write_state(state, is_update ? value : g_.add_node("Assign", {state, value}));
  };
  for (std::size_t k = 0; k < states.size(); ++k) {
    if (states[k]) assign(states[k], made.states[k]);
  }
  const bool is_part = !(step.master == step.whole_master);
  if (is_part && !made.is_whole) return made.master;
  assign(step.whole_master, made.master);
  return {};
}

ValueId Updates::add(const UpdateRequest& request, const UpdateScalars& scalars,
                     const Gather& gather) {
  g_.set_scope(update_scope(request.parameter));
  const UpdateChoice choice = choose_update(request.options, whole_elements(request.parameter));
  const UpdateKind& kind = *find_update_kind(choice.op);
  const ValueId master = request.parameter.initial;
  std::vector<ValueId> states(kind.states.size());
  for (std::size_t k = 0; k < states.size(); ++k) {
    if (!kind.keeps_state(k, choice.settings, request.parameter.start.shape())) continue;
    const TensorType own{DType::float32, request.parameter.start.shape()};
    const bool of_blocks = kind.states[k].shape == StateShape::one_per_block;
    states[k] = add_moment(g_, request.parameter, kind.states[k].name, choice.starts[k],
                           kind.state_type(k, own), of_blocks ? state_block : 1);
  }
  if (kind.compose != nullptr)
    return compose(request, kind, choice.settings, states, scalars, gather);
  const bool lazy = request.keeps_others || choice.lazy || kind.keeps_still(choice.settings);
  const std::vector<ValueId> made =
      add_node(request, choice.op, choice.settings, states, lazy, scalars);
  const std::optional<StateShard>& shard = request.parameter.shard;
  if (!shard || shard->kind != ShardKind::elements) g_.write_state(master, made[0]);
  for (std::size_t k = 0; k < states.size(); ++k) {
    if (states[k]) g_.write_state(states[k], made[1 + k]);
  }
  return made[0];
}

}  // namespace tandem
