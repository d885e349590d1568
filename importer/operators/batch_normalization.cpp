// BatchNormalization in training and inference: what differs between the two.
#include <fmt/format.h>

#include <algorithm>

#include "importer/node_context.h"

namespace tandem::importer::operators {
namespace {

// As the file says: an attribute since version 14; 4 or 5 outputs before; is_test before version 7.
bool file_trains(NodeContext& node) {
  if (node.version() >= 14) return node.flag("training_mode", false);
  if (node.version() < 7) return !node.flag("is_test", false) && node.output_count() > 1;
  return node.output_count() > 1;
}

bool trains(NodeContext& node) {
  const ImportOptions& options = node.session().options;
  if (!options.training || options.batch_norm == "inference") return false;
  return options.batch_norm == "train" || file_trains(node);
}

// Exporters merge equal initializers, a scale of ones with a variance of ones, or name one by
// copies of it: new statistics must not become the weight. `first`: the node that is looked at
// first.
bool is_weight_too(const onnx::GraphProto& graph, const std::string& statistics, int first = 0) {
  for (int n = first; n < graph.node_size(); ++n) {
    const onnx::NodeProto& node = graph.node(n);
    const auto reads = [&](int count) {
      const auto end = node.input().begin() + std::min(count, node.input_size());
      return std::find(node.input().begin(), end, statistics) != end;
    };
    const bool is_copy = node.op_type() == "Identity" && node.output_size() == 1;
    const bool own = first == 0 && node.op_type() == "BatchNormalization";
    if (!reads(own ? 3 : node.input_size())) continue;
    if (!is_copy || is_weight_too(graph, node.output(0), n + 1)) return true;
  }
  return false;
}

// New running statistics go into the state that they came from.
void write_back(NodeContext& node, std::size_t input, const Term& value) {
  Session& session = node.session();
  const ValueId initial = node.in(input).id;
  if (!initial || session.builder.graph().value(initial).kind != ValueKind::state) return;
  for (const State& state : session.builder.graph().states) {
    if (!(state.initial == initial)) continue;
    if (is_weight_too(session.file.model->graph(), state.name)) {
      node.unsupported(
          fmt::format("its running statistics '{}' are a weight, or another operator's, too",
                      state.name),
          "export the model in training mode, which keeps them apart; batch_norm = "
          "\"inference\" trains the rest of the model");
    }
    if (state.final == state.initial) continue;
    node.unsupported(
        fmt::format("its running statistics '{}' are those of another operator too", state.name),
        "batch_norm = \"inference\" trains the rest of the model");
  }
  session.builder.write_state(initial, value.id);
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
    const Term y = node.make("BatchNormalization", inputs, {{"epsilon", epsilon}});
    node.out(0, node.cast(y, node.dtype(0)));
    for (std::size_t i : {3, 4}) {
      node.out(i - 2, node.in(i));
      node.out(i, node.in(i));
    }
    return;
  }
  // Under training_info states change by its bindings alone: new statistics have their own place.
  const bool is_bound = node.session().file.model->training_info_size() > 0;
  for (std::size_t i = 3; is_bound && i < 5; ++i) inputs[i] = node.make("Copy", {inputs[i]});
  std::vector<Term> results =
      node.make_all("BatchNormalizationTraining", inputs,
                    {{"epsilon", epsilon}, {"momentum", node.number("momentum", 0.9)}});
  results[0] = node.cast(results[0], node.dtype(0));
  for (std::size_t i : {1, 2}) {
    results[i] = node.cast(results[i], node.dtype(i + 2));
    if (!is_bound) write_back(node, i + 2, results[i]);
  }
  for (std::size_t i = 0; i < 3; ++i) node.out(i, results[i]);
  out_saved_statistics(node, inputs[0]);
}

}  // namespace tandem::importer::operators
