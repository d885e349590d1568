// BatchNormalization in training and inference: what differs between the two.
#include <fmt/format.h>

#include <array>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "engine/graph/selector.h"
#include "importer/file/traced_mode.h"
#include "importer/node_context.h"

namespace tandem::importer::operators {
namespace {

// As the file says: an attribute since version 14, or, where there is none, what torch.export notes
// in the node's metadata; 4 or 5 outputs before; is_test before version 7.
bool file_trains(NodeContext& node) {
  if (node.version() >= 14) {
    if (node.has_attribute("training_mode")) return node.flag("training_mode", false);
    return traced_in_training(node.node()).value_or(false);
  }
  if (node.version() < 7) return !node.flag("is_test", false) && node.output_count() > 1;
  return node.output_count() > 1;
}

// How the nodes of the file read an initializer that holds running statistics.
struct StatisticsUse {
  int calls = 0;                 // calls of the module that they belong to
  bool belongs_to_more = false;  // a weight too, or another module's
};

// Exporters merge equal initializers, a scale of ones with a variance of ones or the zeros of two
// modules, or name one by copies of it: new statistics must not become the weight or the other
// module's. Calls of one module have the same scale, bias and statistics.
StatisticsUse use_of(const onnx::GraphProto& graph, const std::string& statistics) {
  // By copy: the initializer that it names.
  std::unordered_map<std::string_view, std::string_view> originals;
  const auto original = [&](std::string_view name) {
    const auto found = originals.find(name);
    return found == originals.end() ? name : found->second;
  };
  StatisticsUse use;
  const onnx::NodeProto* first = nullptr;
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() == "Identity" && node.input_size() == 1 && node.output_size() == 1) {
      originals.emplace(node.output(0), original(node.input(0)));
      continue;
    }
    const bool normalizes = node.op_type() == "BatchNormalization" && node.input_size() == 5;
    int reads = 0;
    for (int i = 0; i < node.input_size(); ++i) {
      if (original(node.input(i)) != statistics) continue;
      ++reads;
      if (!normalizes || i < 3) use.belongs_to_more = true;
    }
    if (reads == 0) continue;
    if (reads > 1) use.belongs_to_more = true;  // mean and variance at once
    if (!normalizes) continue;
    ++use.calls;
    if (first == nullptr) first = &node;
    for (int i = 1; i < 5; ++i) {
      if (original(node.input(i)) != original(first->input(i))) use.belongs_to_more = true;
    }
  }
  return use;
}

// Running statistics as an input of a normalization.
struct Statistics {
  const State* state = nullptr;  // null: of no state
  StatisticsUse use;

  // Whether new ones may take the place of the old ones at once: of one call that computes in their
  // type. Else they have their own place, and the state takes the last of them.
  bool moves_in_place(DType computed) const {
    return state == nullptr || (state->start.dtype() == computed && use.calls < 2);
  }
};

// The state that an input is, or a copy of it. What is named by a copy of a weight, as exporters
// merge equal initializers, is a number of its own that nothing moves.
Statistics statistics_of(NodeContext& node, std::size_t input) {
  const Graph& graph = node.session().builder.graph();
  const ValueId given = node.in(input).id;
  ValueId initial = given;
  if (!initial) return {};
  for (;;) {
    const NodeId producer = graph.value(initial).producer;
    if (!producer || graph.node(producer).op->name != "Identity") break;
    initial = graph.node(producer).inputs[0];
  }
  for (const State& state : graph.states) {
    if (!(state.initial == initial)) continue;
    const StatisticsUse use = use_of(node.session().file.model->graph(), state.name);
    const bool is_copy = !(initial == given);
    if (is_copy && use.belongs_to_more) return {};
    return {&state, use};
  }
  return {};
}

// Whether the mode "file" has no answer: neither an attribute nor a traced call says the mode.
// Statistics that the file computes need no answer, since no step moves them.
bool is_unsaid(NodeContext& node) {
  return node.version() >= 14 && !node.has_attribute("training_mode") &&
         !traced_in_training(node.node()) && omits_training_mode(*node.session().file.model) &&
         statistics_of(node, 3).state != nullptr;
}

bool trains(NodeContext& node) {
  const ImportOptions& options = node.session().options;
  BatchNormUse& use = node.session().batch_norms.emplace_back(node.path(), file_trains(node));
  std::string mode = options.batch_norm;
  for (const OperatorRule& rule : options.batch_norm_rules) {
    if (Selector(rule.at).matches(use.path)) mode = rule.mode;
  }
  if (mode == "file" && options.training && is_unsaid(node)) {
    node.unsupported(
        "the file does not say whether it trains: torch.onnx.export(dynamo=True) writes the mode "
        "only into the node's name and metadata, and they are lost",
        fmt::format("the file as the exporter wrote it; or model.batch_norm = \"inference\" or "
                    "\"train\", or rules: [ {{ at = \"**\", mode = \"inference\" }}, {{ at = "
                    "\"{}\", mode = \"train\" }} ]",
                    node.path()));
  }
  use.trains = mode == "train" || (mode == "file" && use.file_trains);
  return options.training && use.trains;
}

// What the calls of a module so far have made of its statistics.
Term statistics_so_far(NodeContext& node, std::size_t input, const State* state) {
  if (state == nullptr) return node.in(input);
  ValueId last = state->final;
  if (!(last == state->initial)) {
    const Graph& graph = node.session().builder.graph();
    const Node& writer = graph.node(graph.value(last).producer);
    last = writer.op->name == "Assign" ? writer.inputs[1] : state->initial;
  }
  return node.session().value(last);
}

// New running statistics go into the state that they came from.
void write_back(NodeContext& node, const Statistics& statistics, const Term& value,
                DType computed) {
  Session& session = node.session();
  const State* state = statistics.state;
  if (state == nullptr) return;
  const ValueId initial = state->initial;
  const bool in_place = statistics.moves_in_place(computed);
  if (statistics.use.belongs_to_more) {
    node.unsupported(
        fmt::format("its running statistics '{}' are a weight, or another operator's, too",
                    state->name),
        "export the model in training mode (with dynamo=True also with optimize=False), which "
        "keeps them apart; batch_norm = \"inference\" trains the rest of the model");
  }
  if (in_place && !(state->final == initial)) {  // a body that runs more than once
    node.unsupported(
        fmt::format("its running statistics '{}' are those of another operator too", state->name),
        "batch_norm = \"inference\" trains the rest of the model");
  }
  const ValueId final =
      in_place ? value.id : node.make("Assign", {session.value(initial), value}).id;
  session.builder.write_state(initial, final);
}

// Whether an operand is a function of what is fed: statistics of the batch that the file computes.
bool comes_from_data(NodeContext& node, const Term& term) {
  if (term.is_constant()) return false;
  const Graph& graph = node.session().builder.graph();
  std::unordered_set<std::int32_t> seen;
  std::vector<ValueId> open{term.id};
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    if (!value || !seen.insert(static_cast<std::int32_t>(value.index)).second) continue;
    const NodeId producer = graph.value(value).producer;
    if (producer) {
      const auto& inputs = graph.node(producer).inputs;
      open.insert(open.end(), inputs.begin(), inputs.end());
      continue;
    }
    for (const NamedValue& input : graph.inputs) {
      if (input.value == value) return true;
    }
  }
  return false;
}

// (x - mean) / sqrt(var + epsilon) scale + bias as a chain, whose gradient passes through the
// statistics, too; those of the operator BatchNormalization are constants.
Term by_computed_statistics(NodeContext& node, const std::vector<Term>& inputs, double epsilon) {
  const Term& x = inputs[0];
  Shape channels(x.type.shape.size(), 1);
  channels[1] = x.type.shape[1];
  const Term shifted = node.make("Add", {inputs[4], node.scalar(epsilon, x.type.dtype)});
  const Term factor = node.make("Div", {inputs[1], node.make("Sqrt", {shifted})});
  const Term centred = node.make("Sub", {x, node.reshape(inputs[3], channels)});
  const Term scaled = node.make("Mul", {centred, node.reshape(factor, channels)});
  return node.make("Add", {scaled, node.reshape(inputs[2], channels)});
}

// Mean and variance of each channel of x [N, C, ...] over the batch: outputs 3 and 4 before version
// 14, which files name and hardly ever read.
void out_saved_statistics(NodeContext& node, const Term& x) {
  if (!node.wants(3) && !node.wants(4)) return;
  Ints axes{0};
  for (std::int64_t i = 2; i < node.rank(0); ++i) axes.push_back(i);
  const Attributes over_batch{{"axes", axes}, {"keepdims", std::int64_t{1}}};
  const Term mean = node.make("ReduceMean", {x}, over_batch);
  const Term deviation = node.make("Sub", {x, mean});
  const Term variance =
      node.make("ReduceMean", {node.make("Mul", {deviation, deviation})}, over_batch);
  const Shape channels{x.type.shape[1]};
  node.out(3, node.cast(node.reshape(mean, channels), node.dtype(3)));
  node.out(4, node.cast(node.reshape(variance, channels), node.dtype(4)));
}

}  // namespace

// Computed in float32, or in float64 where x is; the operands may differ in type since version 14.
void batch_normalization(NodeContext& node) {
  if (!node.flag("spatial", true)) node.unsupported("statistics of single pixels (spatial = 0)");
  if (node.rank(0) < 2) node.fail("input", "[N, C, ...]", to_string(node.shape(0)));
  const DType dtype = node.dtype(0) == DType::float64 ? DType::float64 : DType::float32;
  std::vector<Term> inputs;
  for (std::size_t i = 0; i < 5; ++i) inputs.push_back(node.cast(node.in(i), dtype));
  const double epsilon = node.number("epsilon", 1e-5);
  if (!trains(node)) {
    for (std::size_t i : {3, 4})
      inputs[i] = node.cast(statistics_so_far(node, i, statistics_of(node, i).state), dtype);
    const bool of_batch = node.session().options.training &&
                          (comes_from_data(node, inputs[3]) || comes_from_data(node, inputs[4]));
    const Term y = of_batch ? by_computed_statistics(node, inputs, epsilon)
                            : node.make("BatchNormalization", inputs, {{"epsilon", epsilon}});
    node.out(0, node.cast(y, node.dtype(0)));
    for (std::size_t i : {3, 4}) {
      node.out(i - 2, node.in(i));
      node.out(i, node.in(i));
    }
    return;
  }
  // Under training_info only its bindings change states: new statistics have their own place.
  const bool is_bound = node.session().file.model->training_info_size() > 0;
  std::array<Statistics, 2> statistics;  // the mean's and the variance's
  for (std::size_t i : {3, 4}) {
    if (is_bound) {
      inputs[i] = node.make("Copy", {inputs[i]});
      continue;
    }
    statistics[i - 3] = statistics_of(node, i);
    inputs[i] = node.cast(statistics_so_far(node, i, statistics[i - 3].state), dtype);
  }
  std::vector<Term> results =
      node.make_all("BatchNormalizationTraining", inputs,
                    {{"epsilon", epsilon}, {"momentum", node.number("momentum", 0.9)}});
  results[0] = node.cast(results[0], node.dtype(0));
  for (std::size_t i : {1, 2}) {
    results[i] = node.cast(results[i], node.dtype(i + 2));
    if (!is_bound) write_back(node, statistics[i - 1], results[i], dtype);
  }
  for (std::size_t i = 0; i < 3; ++i) node.out(i, results[i]);
  out_saved_statistics(node, inputs[0]);
}

}  // namespace tandem::importer::operators
