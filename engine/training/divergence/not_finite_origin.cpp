#include "engine/training/divergence/not_finite_origin.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_set>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/training/evaluation.h"
#include "engine/training/weight_sums.h"

namespace tandem {
namespace {

constexpr std::int64_t most_state_bytes = std::int64_t{2} << 30;
constexpr std::int64_t most_elements = std::int64_t{1} << 28;  // larger values are not looked at

/// What makes a result infinite or NaN, by operator.
struct Cause {
  std::string_view op, forward, gradient;
};
constexpr std::array causes{
    Cause{"Log", "its operand is 0 or below", "its operand is 0"},
    Cause{"Log1p", "its operand is -1 or below", "its operand is -1"},
    Cause{"Exp", "its operand is above 88 (709 in float64)", "its result overflows"},
    Cause{"Expm1", "its operand is above 88 (709 in float64)", "its result overflows"},
    Cause{"Sqrt", "its operand is below 0", "its operand is 0, where its slope is infinite"},
    Cause{"Div", "its divisor is 0", "its divisor is 0 or close to it"},
    Cause{"Reciprocal", "its operand is 0", "its operand is 0 or close to it"},
    Cause{"Pow", "its base is 0 or below, or its result overflows",
          "its base is 0, or its result overflows"},
    Cause{"Mul", "its result overflows, or it multiplies 0 by an infinity",
          "it multiplies 0 by an infinity, or its result overflows"},
    Cause{"Sub", "its result overflows, or both operands are infinite", ""},
    Cause{"Add", "its result overflows, or its operands are opposite infinities", ""},
    Cause{"Softmax", "a whole row of it is masked by -inf", "a whole row of it is masked by -inf"},
    Cause{"MatMul", "its sums overflow", "its sums overflow"},
    Cause{"Conv", "its sums overflow", "its sums overflow"},
};

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

/// Adds outputs for every value in front of the updates.
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

struct Marks {
  bool nan = false, infinite = false;
  bool any() const { return nan || infinite; }
};
using Marked = std::map<std::int32_t, Marks>;  // by value

/// From a value that is not finite back to the node that made it so.
class Walk {
 public:
  Walk(const Graph& graph, const Marked& marked) : graph_(graph), marked_(marked) {}

  std::optional<NotFiniteOrigin> from(ValueId value) {
    if (!marks(value).any()) return std::nullopt;
    const bool is_nan = marks(value).nan;
    std::unordered_set<std::int32_t> seen;
    for (;;) {
      seen.insert(value.index);
      const Node& node = graph_.node(graph_.value(value).producer);
      ValueId next;
      for (const ValueId input : node.inputs) {
        if (!input || seen.contains(input.index)) continue;
        // A NaN comes of a NaN where there is one; else it began here, of infinities perhaps.
        if (marks(value).nan ? marks(input).nan : marks(input).infinite) next = input;
      }
      if (!next && marks(value).nan) {
        for (const ValueId input : node.inputs) {
          if (input && !seen.contains(input.index) && is_unmeant_infinity(input)) next = input;
        }
      }
      if (!next) {
        const bool is_gradient = node.phase == Phase::backward;
        return NotFiniteOrigin{node.path, is_gradient ? forward_op(node) : node.op->name,
                               is_nan && marks(value).nan, is_gradient};
      }
      value = next;
    }
  }

 private:
  Marks marks(ValueId value) const {
    const auto at = marked_.find(value.index);
    return at == marked_.end() ? Marks{} : at->second;
  }

  /// The operator whose gradient a node is a part of: of several at its path one that may have an
  /// infinite slope.
  std::string forward_op(const Node& gradient) const {
    std::string op = gradient.op->name;
    bool is_any = false;
    for (const Node& node : graph_.nodes) {
      if (node.phase != Phase::forward || node.path != gradient.path) continue;
      const bool has_cause = std::any_of(causes.begin(), causes.end(), [&](const Cause& each) {
        return each.op == node.op->name;
      });
      if (has_cause) return node.op->name;
      if (!is_any) op = node.op->name;
      is_any = true;
    }
    return op;
  }

  /// An infinity that arithmetic made; those of masks are written or chosen.
  bool is_unmeant_infinity(ValueId value) const {
    if (!marks(value).infinite) return false;
    const NodeId maker = graph_.value(value).producer;
    if (!maker) return false;
    static constexpr std::array made{"Div", "Exp", "Expm1", "Log", "Log1p", "Pow", "Reciprocal"};
    const std::string& op = graph_.node(maker).op->name;
    return std::find(made.begin(), made.end(), op) != made.end();
  }

  const Graph& graph_;
  const Marked& marked_;
};

/// One run of the step's graph over some samples, beside the training.
std::optional<NotFiniteOrigin> origin_in(const RunConfig& config, const RunParts& parts,
                                         const DataSource& source,
                                         std::span<const std::int64_t> samples,
                                         const Augmentation& augmentation, const StateStore& states,
                                         std::uint64_t step) {
  const auto count = static_cast<std::int64_t>(samples.size());
  TrainingRequest request;
  request.config = &config;
  request.fields = field_types(source, count);
  request.samples = {count, count};
  request.evaluate = parts.evaluate;
  request.algorithm = parts.algorithm_for(count, true);
  TrainingGraph training =
      build_training_graph(*parts.operators, parts.forward(count, true), request);
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
        static_cast<std::int64_t>(step);
  for (const auto& [input, rate] : bound.learning_rates) feed(input, 0);
  for (const auto& [input, average] : bound.averages) feed(input, 0);
  for (const auto& [input, name] : bound.denominators) {
    for (const LossTerm& term : config.loss.terms) {
      if (term.name == name) feed(input, static_cast<float>(weight_sum(term, source, samples)));
    }
  }
  ErrorWord word;
  StepContext context;
  context.seed = config.seed;
  context.step = step;
  context.error = &word;
  program.run(context, 0);

  Marked marked;
  const auto is_marked = [&](const std::string& name) {
    return *static_cast<const float*>(program.output(bound.output(name), 0)) != 0;
  };
  for (const Probe& probe : probes)
    marked[probe.value.index] = {is_marked(probe.nan), is_marked(probe.infinite)};
  Walk walk(graph, marked);
  if (const NamedValue* loss = graph.find_output("loss")) {
    if (auto found = walk.from(loss->value)) return found;
  }
  for (const Node& node : graph.nodes) {
    if (node.phase != Phase::update) continue;
    for (const ValueId input : node.inputs) {
      if (!input) continue;
      if (auto found = walk.from(input)) return found;
    }
  }
  return std::nullopt;
}

}  // namespace

Diagnostic NotFiniteOrigin::diagnostic() const {
  Diagnostic d;
  d.path = path;
  d.message = fmt::format("{} begins here, in {}{}", is_nan ? "nan" : "inf",
                          is_gradient ? "the gradient of " : "", op);
  const auto* known =
      std::find_if(causes.begin(), causes.end(), [&](const Cause& each) { return each.op == op; });
  if (known != causes.end()) {
    const std::string_view why = is_gradient ? known->gradient : known->forward;
    if (!why.empty()) d.message += fmt::format(": {}", why);
  }
  return d;
}

std::optional<NotFiniteOrigin> not_finite_origin(const RunConfig& config, const RunParts& parts,
                                                 const DataSource& source,
                                                 std::span<const std::int64_t> samples,
                                                 const Augmentation& augmentation,
                                                 const StateStore& states, std::uint64_t step) {
  if (parts.ranks || parts.staged != nullptr || parts.forward_of_length) return std::nullopt;
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
