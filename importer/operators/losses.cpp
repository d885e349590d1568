// The losses of integer classes with their weights, ignored labels and reductions.
#include <fmt/format.h>

#include "importer/node_context.h"

namespace tandem::importer::operators {
namespace {

void reduce_losses(NodeContext& node, const Term& losses, const Term& weights) {
  const std::string reduction = node.text("reduction", "mean");
  Ints axes;
  for (std::size_t i = 0; i < losses.type.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  const Attributes all{{"axes", axes}, {"keepdims", std::int64_t{0}}};
  const auto out = [&](const Term& loss) { node.out(0, node.cast(loss, node.dtype(0))); };
  if (reduction == "none") {
    out(losses);
  } else if (reduction == "sum") {
    out(node.make("ReduceSum", {losses}, all));
  } else if (reduction != "mean") {
    node.fail("reduction", "none, sum or mean", reduction);
  } else if (!weights.id && !weights.constant) {
    out(node.make("ReduceMean", {losses}, all));
  } else {
    const Term total = node.make("ReduceSum", {losses}, all);
    const Term count = node.cast(node.make("ReduceSum", {weights}, all), losses.type.dtype);
    out(node.make("Div", {total, count}));
  }
}

// LabelWeights where the node ignores a label or weighs classes.
Term label_weights(NodeContext& node) {
  const bool ignores = node.has_attribute("ignore_index");
  if (!ignores && !node.has(2)) return {};
  std::vector<Term> inputs{node.in(1)};
  if (node.has(2)) {
    if (node.shape(2) != Shape{node.shape(0)[1]}) {
      node.fail("class weights", fmt::format("[{}]", node.shape(0)[1]), to_string(node.shape(2)));
    }
    inputs.push_back(node.cast(node.in(2), DType::float32));
  }
  return node.make("LabelWeights", inputs,
                   {{"ignore_index", node.integer("ignore_index", 0)},
                    {"ignore", std::int64_t{ignores}},
                    {"classes", node.shape(0)[1]}});
}

void check_operands(NodeContext& node) {
  const Shape& x = node.shape(0);
  if (x.size() < 2) node.fail("scores", "[N, C, ...]", to_string(x));
  Shape labels = x;
  labels.erase(labels.begin() + 1);
  if (node.shape(1) != labels) node.fail("labels", to_string(labels), to_string(node.shape(1)));
  if (node.dtype(1) != DType::int32 && node.dtype(1) != DType::int64) {
    node.fail("labels", "int32 or int64", std::string(name_of(node.dtype(1))));
  }
}

void loss(NodeContext& node, std::string_view op) {
  check_operands(node);
  const Term weights = label_weights(node);
  std::vector<Term> inputs{node.widen(node.in(0)), node.in(1)};
  if (weights.id || weights.constant) inputs.push_back(weights);
  reduce_losses(node, node.make(op, inputs), weights);
}

}  // namespace

void softmax_cross_entropy_loss(NodeContext& node) {
  loss(node, "SoftmaxCrossEntropy");
  if (node.wants(1))
    node.out(1, node.make("LogSoftmax", {node.in(0)}, {{"axis", std::int64_t{1}}}));
}
void negative_log_likelihood_loss(NodeContext& node) { loss(node, "NegativeLogLikelihood"); }

}  // namespace tandem::importer::operators
