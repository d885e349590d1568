// Linear models of ai.onnx.ml. Their coefficients and intercepts are attributes in the file and
// inputs 1 and 2 here (importer/weights/attribute_weights.h), but for nodes in functions and
// bodies.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "importer/file/initializers.h"
#include "importer/node_context.h"

namespace tandem::importer::operators::ml {
namespace {

struct Weights {
  Term coefficients;               // [rows, features]
  std::optional<Term> intercepts;  // [rows]
  bool mirrored = false;
};

bool is_lifted(NodeContext& node, std::size_t i) {
  if (!node.has(i)) return false;
  if (node.scope().main && attribute_weight(node.session().file.attribute_weights, node.node(),
                                            static_cast<int>(i)) != nullptr)
    return true;
  node.fail("number of inputs", "1", std::to_string(node.input_count()));
}

Weights weights_of(NodeContext& node, std::int64_t rows) {
  Weights weights;
  const std::vector<float> coefficients = node.numbers("coefficients");
  const std::vector<float> intercepts = node.numbers("intercepts");
  const auto count = static_cast<std::int64_t>(coefficients.size());
  if (count == 0 || count % rows != 0) {
    node.fail("number of coefficients", fmt::format("as many for each of {} rows", rows),
              std::to_string(count));
  }
  if (!intercepts.empty() && static_cast<std::int64_t>(intercepts.size()) != rows) {
    node.fail("number of intercepts", std::to_string(rows), std::to_string(intercepts.size()));
  }
  if (is_lifted(node, 1)) {
    weights.coefficients = node.in(1);
    weights.mirrored = node.shape(1)[0] != rows;
  } else {
    weights.coefficients = node.constant(HostTensor::from({rows, count / rows}, coefficients));
  }
  if (is_lifted(node, 2)) {
    weights.intercepts = node.in(2);
  } else if (!intercepts.empty()) {
    weights.intercepts = node.constant(HostTensor::from({rows}, intercepts));
  }
  return weights;
}

// [N, rows]; a vector is one sample.
Term scores_of(NodeContext& node, const Weights& weights) {
  Term x = node.cast(node.in(0), DType::float32);
  if (x.type.rank() == 1) x = node.reshape(x, {1, x.type.shape[0]});
  const std::int64_t features = weights.coefficients.type.shape[1];
  if (x.type.rank() != 2 || x.type.shape[1] != features) {
    node.fail("the input", fmt::format("[N, {}]", features), to_string(node.shape(0)));
  }
  const Term product = node.make("MatMul", {x, node.transpose(weights.coefficients, {1, 0})});
  return weights.intercepts ? node.make("Add", {product, *weights.intercepts}) : product;
}

const Attributes over_classes{{"axes", Ints{1}}, {"keepdims", std::int64_t{1}}};

// onnxruntime's: scores within 1e-7 of 0 stay about 0, the others share what is to be had.
Term softmax_zero(NodeContext& node, const Term& x) {
  const DType dtype = x.type.dtype;
  const Term counts = node.make("Greater", {node.make("Abs", {x}), node.scalar(1e-7, dtype)});
  const Term largest = node.make("StopGradient", {node.make("ReduceMax", {x}, over_classes)});
  const Term zero = node.scalar(0, dtype);
  const Term parts =
      node.make("Where", {counts, node.make("Exp", {node.make("Sub", {x, largest})}), zero});
  const Term small = node.make("Mul", {x, node.make("Exp", {node.make("Neg", {largest})})});
  const Term total = node.make("ReduceSum", {parts}, over_classes);
  return node.make("Div", {node.make("Where", {counts, parts, small}), total});
}

Term transformed(NodeContext& node, const Term& scores, const std::string& transform) {
  if (transform == "NONE") return scores;
  if (transform == "LOGISTIC") return node.make("Sigmoid", {scores});
  if (transform == "SOFTMAX") return node.make("Softmax", {scores}, {{"axis", std::int64_t{1}}});
  if (transform == "SOFTMAX_ZERO") return softmax_zero(node, scores);
  node.unsupported(
      fmt::format("with post_transform {}", transform),
      "one of NONE, SOFTMAX, LOGISTIC and SOFTMAX_ZERO, or take the scores (raw_scores "
      "of skl2onnx) and transform them after the model");
}

Term concatenated(NodeContext& node, const Term& first, const Term& second) {
  return node.make("Concat", {first, second}, {{"axis", std::int64_t{1}}});
}

// Where only the second of two classes has a score: the probabilities, or scores, of both.
Term of_both(NodeContext& node, const Term& score, const std::string& transform, bool mirrored) {
  if (mirrored) {
    return concatenated(node, node.make("Sigmoid", {node.make("Neg", {score})}),
                        node.make("Sigmoid", {score}));
  }
  if (transform != "NONE" && transform != "LOGISTIC") {
    node.unsupported(fmt::format("with post_transform {} of one score for two classes", transform),
                     "one row of coefficients for each class, or LOGISTIC");
  }
  const Term second = transformed(node, score, transform);
  const Term rest = node.make("Sub", {node.scalar(1, second.type.dtype), second});
  return concatenated(node, rest, second);
}

// The place of the class with the largest score, of equal ones the first; of two classes the
// second where its score is above 0.
Term places(NodeContext& node, const Term& scores) {
  const Shape samples{scores.type.shape[0]};
  if (scores.type.shape[1] == 1) {
    const Term above = node.make("Greater", {scores, node.scalar(0, scores.type.dtype)});
    return node.reshape(node.cast(above, DType::int64), samples);
  }
  const Term best =
      node.make_all("TopK", {scores}, {{"axis", std::int64_t{1}}, {"k", std::int64_t{1}}})[1];
  return node.reshape(best, samples);
}

// Whether an imported node reads the value: those that only make outputs of text are not imported.
bool is_read(NodeContext& node, const std::string& value) {
  const onnx::GraphProto& graph = node.session().file.model->graph();
  std::vector<std::string> outputs;
  for (const onnx::ValueInfoProto& output : graph.output()) {
    if (!is_text(output)) outputs.push_back(output.name());
  }
  const std::vector<bool> needed = needed_nodes(graph, outputs);
  for (int n = 0; n < graph.node_size(); ++n) {
    if (!needed[static_cast<std::size_t>(n)]) continue;
    const std::vector<std::string> reads = reads_of(graph.node(n));
    if (std::find(reads.begin(), reads.end(), value) != reads.end()) return true;
  }
  return false;
}

void give_labels(NodeContext& node, const Term& scores, const Ints& numbers, bool is_text) {
  if (!node.wants(0)) return;
  const Term place = places(node, scores);
  Ints counted(numbers.size());
  std::iota(counted.begin(), counted.end(), 0);
  if (is_text) {
    const std::string& name = node.node().output(0);
    if (is_read(node, name)) {
      node.unsupported(fmt::format("with labels of text ('{}') that another operator reads", name),
                       "convert the classifier with classes of integers");
    }
    node.session().note(node.path(), "the labels are text: their places in classlabels_strings");
    node.out(0, place);
  } else if (numbers == counted) {
    node.out(0, place);
  } else {
    const Term table =
        node.constant(HostTensor::from({static_cast<std::int64_t>(numbers.size())}, numbers));
    node.out(0, node.make("Gather", {table, place}, {{"axis", std::int64_t{0}}}));
  }
}

// Losses read the scores, which the file gives no name.
void name_scores(NodeContext& node, const Term& scores) {
  if (!node.scope().main || !scores.id) return;
  auto& builder = node.session().builder;
  const std::string name = node.path() + ":scores";
  builder.rename(scores.id, name);
  node.session().note(node.path(), fmt::format("losses that take logits read \"{}\"", name));
}

}  // namespace

void linear_regressor(NodeContext& node) {
  const std::int64_t targets = node.integer("targets", 1);
  if (targets < 1) node.fail("targets", "1 or more", std::to_string(targets));
  const std::string transform = node.text("post_transform", "NONE");
  if (targets == 1 && transform != "NONE") {
    node.unsupported(fmt::format("with post_transform {} of one target", transform));
  }
  const Term scores = scores_of(node, weights_of(node, targets));
  node.out(0, transformed(node, scores, transform));
}

void linear_classifier(NodeContext& node) {
  const Ints numbers = node.integers("classlabels_ints", {});
  const std::size_t texts = node.count("classlabels_strings");
  node.integer("multi_class", 0);  // says how it was trained; it changes no result
  if ((texts > 0) == !numbers.empty()) {
    node.fail("class labels", "classlabels_ints or classlabels_strings, not both");
  }
  const auto classes = static_cast<std::int64_t>(std::max(texts, numbers.size()));
  if (classes < 2) node.fail("number of class labels", "2 or more", std::to_string(classes));
  const auto rows = static_cast<std::int64_t>(node.numbers("intercepts").size());
  if (rows != classes && !(rows == 1 && classes == 2)) {
    node.fail("number of intercepts", classes == 2 ? "1 or 2" : std::to_string(classes),
              std::to_string(rows));
  }
  const std::string transform = node.text("post_transform", "NONE");
  const Weights weights = weights_of(node, rows);
  const Term scores = scores_of(node, weights);
  const Term probabilities = scores.type.shape[1] == 1
                                 ? of_both(node, scores, transform, weights.mirrored)
                                 : transformed(node, scores, transform);
  if (transform != "NONE") name_scores(node, scores);
  give_labels(node, scores, numbers, texts > 0);
  node.out(1, probabilities);
}

}  // namespace tandem::importer::operators::ml
