#include "engine/train/divergence/not_finite_origin.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "engine/graph/builder.h"
#include "engine/graph/finiteness.h"
#include "engine/train/divergence/finite_check.h"
#include "engine/train/evaluation/evaluation.h"
#include "engine/train/graph/weight_sums.h"

namespace tandem {
namespace {

constexpr std::int64_t most_state_bytes = std::int64_t{2} << 30;
constexpr std::int64_t most_elements = std::int64_t{1} << 28;  // larger values are not checked

bool is_computed_float(const Graph& graph, ValueId id) {
  if (!id) return false;
  const Value& value = graph.value(id);
  return value.kind == ValueKind::computed && is_float(value.type.dtype) &&
         value.type.elements() <= most_elements;
}

/// The outputs that count what is not finite in a value.
struct Probe {
  ValueId value;
  std::string nan, infinite;
};

ValueId count_of(GraphBuilder& to, std::string_view predicate, ValueId value) {
  const ValueId marks = to.cast(to.add_node(predicate, {value}), DType::float32);
  Ints axes(to.shape(value).size());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  return axes.empty() ? marks : to.reduce_sum(marks, std::move(axes), false);
}

/// Adds outputs for every value before the updates.
std::vector<Probe> add_probes(TrainingGraph& training, const OperatorSet& operators) {
  const std::size_t nodes = training.graph.nodes.size();
  GraphBuilder builder(operators, std::move(training.graph));
  std::vector<Probe> probes;
  for (std::size_t n = 0; n < nodes; ++n) {
    const Node node = builder.graph().nodes[n];
    if (node.phase == Phase::update) continue;
    for (const ValueId value : node.outputs) {
      if (!is_computed_float(builder.graph(), value)) continue;
      Probe probe{value, fmt::format("probe.nan.{}", probes.size()),
                  fmt::format("probe.inf.{}", probes.size())};
      builder.set_scope({node.path, node.phase, node.origins});
      builder.output(probe.nan, count_of(builder, "IsNaN", value));
      builder.output(probe.infinite, count_of(builder, "IsInf", value));
      probes.push_back(std::move(probe));
    }
  }
  training.graph = builder.finish();
  return probes;
}

void mark(ValueId value, Finiteness found, MarkedValues& marked) {
  if (value && found != Finiteness::finite)
    marked[value.index] = {found == Finiteness::nan, found == Finiteness::infinite};
}

/// The values that a step reads from states, constants and its feeds.
MarkedValues marked_before(const Graph& graph, const StateStore& states, Program& program) {
  MarkedValues marked;
  for (const NotFiniteState& bad : not_finite_states(states, {})) {
    if (const State* const state = graph.find_state(bad.name))
      mark(state->initial, bad.worst, marked);
  }
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (const auto& constant = graph.values[v].constant)
      mark({static_cast<std::int32_t>(v)}, finiteness_of(*constant), marked);
  }
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const TensorType& type = graph.type(graph.inputs[i].value);
    mark(graph.inputs[i].value,
         finiteness_of(type.dtype, program.input_slot(static_cast<int>(i), 0), type.elements()),
         marked);
  }
  return marked;
}

/// One run of the step's graph over some samples, apart from the training.
std::optional<NotFiniteOrigin> origin_in(const RunConfig& config, const RunParts& parts,
                                         const DataSource& source,
                                         std::span<const std::int64_t> samples,
                                         const Augmentation& augmentation, const StateStore& states,
                                         const StepFacts& step) {
  const auto count = static_cast<std::int64_t>(samples.size());
  TrainingRequest request;
  request.config = &config;
  request.fields = field_types(source, count);
  request.samples = {count, count};
  request.evaluate = parts.evaluate;
  request.thawed = step.thawed;
  request.algorithm = parts.model->algorithm({count, true});
  TrainingGraph training =
      build_training_graph(*parts.operators, parts.model->forward({count, true}), request);
  const std::vector<Probe> probes = add_probes(training, *parts.operators);
  const Graph graph = training.graph;

  std::vector<std::string> fields;
  for (const DataField& field : source.fields()) fields.push_back(field.name);
  StateStore own;
  const BoundProgram bound = bind_program(training, parts, own, make_arenas(), fields);
  for (const std::string& name : own.names()) {
    if (states.has(name)) own.write(name, states.read(name));
  }
  Program& program = *bound.program;
  for (const int field : fed_fields(bound))
    source.fill(field, samples, &augmentation, program.input_slot(bound.data_inputs[field], 0));
  const auto feed = [&](int input, float value) {
    *static_cast<float*>(program.input_slot(input, 0)) = value;
  };
  if (bound.step_input >= 0)
    *static_cast<std::int64_t*>(program.input_slot(bound.step_input, 0)) =
        static_cast<std::int64_t>(step.number);
  for (const auto& [input, rate] : bound.learning_rates) feed(input, 0);
  for (const auto& [input, average] : bound.averages) feed(input, 0);
  for (const auto& [input, name] : bound.denominators) {
    for (const LossTerm& term : config.loss.terms) {
      if (term.name == name) feed(input, static_cast<float>(weight_sum(term, source, samples)));
    }
  }
  MarkedValues marked = marked_before(graph, own, program);
  ErrorWord word;
  StepContext context;
  context.seed = config.seed;
  context.step = step.number;
  context.error = &word;
  program.run(context, 0);

  const auto is_marked = [&](const std::string& name) {
    return *static_cast<const float*>(program.output(bound.output(name), 0)) != 0;
  };
  for (const Probe& probe : probes) {
    if (const Marks found{is_marked(probe.nan), is_marked(probe.infinite)}; found.any())
      marked[probe.value.index] = found;
  }
  std::vector<ValueId> targets;
  if (const NamedValue* loss = graph.find_output("loss")) targets.push_back(loss->value);
  if (auto found = search_origin(graph, marked, targets)) return found;
  for (const Node& node : graph.nodes) {
    if (node.phase != Phase::update) continue;
    for (const ValueId input : node.inputs) {
      if (is_computed_float(graph, input)) targets.push_back(input);
    }
  }
  return search_origin(graph, marked, targets);
}

}  // namespace

std::optional<NotFiniteOrigin> not_finite_origin(const RunConfig& config, const RunParts& parts,
                                                 const DataSource& source,
                                                 std::span<const std::int64_t> samples,
                                                 const Augmentation& augmentation,
                                                 const StateStore& states, const StepFacts& step) {
  if (parts.ranks->ranks() > 1 || parts.staged != nullptr) return std::nullopt;
  std::int64_t bytes = 0;
  for (const std::string& name : states.names())
    bytes += static_cast<std::int64_t>(states.type(name).bytes());
  if (bytes > most_state_bytes) return std::nullopt;
  const auto part = static_cast<std::size_t>(config.micro_batch_size());
  for (std::size_t at = 0; at < samples.size(); at += part) {
    const std::size_t count = std::min(part, samples.size() - at);
    if (auto found = origin_in(config, parts, source, samples.subspan(at, count),
                               augmentation.part(at, count), states, step))
      return found;
  }
  return std::nullopt;
}

}  // namespace tandem
