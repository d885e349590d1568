#include "engine/train/divergence/training_mode.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "engine/operators/operator.h"

namespace tandem {
namespace {

std::string samples_text(std::int64_t samples) {
  return std::to_string(samples) + (samples == 1 ? " sample" : " samples");
}

class TrainingMode {
 public:
  TrainingMode(const Graph& graph, const TrainingCase& of) : graph_(graph), of_(of) {}

  TrainingModeReport run() {
    for (const Node& node : graph_.nodes) {
      if (node.phase != Phase::forward || node.inputs.empty() || !node.inputs[0]) continue;
      const std::string_view op = node.op->name;
      if (op == "BatchNormalizationTraining") check_batch_normalization(node);
      if (op == "LayerNormalization") check_normalized_part(node);
      if (op.starts_with("Reduce")) check_reduction(node);
      if (op == "Div") check_division(node);
      if (op == "Attention") check_mask(node, 3);
      if (op == "Softmax" || op == "LogSoftmax") check_masked_scores(node);
    }
    return std::move(report_);
  }

 private:
  const Shape& shape(const Node& node, std::size_t input = 0) const {
    return graph_.type(node.inputs[input]).shape;
  }

  void refuse(const Node& node, std::string message, std::string expected, std::string got,
              std::string fix) {
    Diagnostic d;
    d.path = node.path;
    d.message = std::move(message) + (of_.ends_epoch ? ", in the last step of an epoch" : "");
    d.expected = std::move(expected);
    d.got = std::move(got) + " (" + samples_text(of_.samples) + ")";
    d.fix = std::move(fix);
    report_.problems.push_back(std::move(d));
  }

  void warn(const Node& node, const std::string& message) {
    report_.warnings.push_back(
        "warning: " + node.path + ": " + message +
        (of_.ends_epoch ? " (in the last step of an epoch, of " + samples_text(of_.samples) + ")"
                        : ""));
  }

  std::string larger_batch() const {
    return of_.ends_epoch
               ? "set data.drop_last = true, or another batch_size, so that no step has so few "
                 "samples"
               : "raise batch_size (of micro_batch: the samples of one pass)";
  }

  void check_batch_normalization(const Node& node) {
    const Shape& x = shape(node);
    std::int64_t values = element_count(x) / std::max<std::int64_t>(x[1], 1);
    if (of_.statistics_over_ranks && of_.samples > 0)
      values = values / of_.samples * of_.all_samples;
    if (values != 1) return;
    refuse(node, "one value for each channel: BatchNormalization cannot normalise it in training",
           "more than one value for each channel", to_string(x),
           larger_batch() + "; or model.batch_norm = \"inference\" keeps the running statistics");
  }

  /// "InstanceNormalization" of the path "norm.InstanceNormalization#1".
  static std::string_view operator_in_file(const Node& node) {
    const std::string_view path = node.path;
    const std::string_view last = path.substr(path.rfind('.') + 1);
    return last.substr(0, last.find('#'));
  }

  /// PyTorch's GroupNorm is exported as a Reshape with an InstanceNormalization of the groups.
  bool normalises_groups(const Node& node) const {
    const std::string_view op = operator_in_file(node);
    if (op == "GroupNormalization") return true;
    const std::string module = node.path.substr(0, node.path.size() - op.size());
    return std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const Node& other) {
      return other.op->name == std::string_view("Reshape") && other.path.starts_with(module) &&
             std::string_view(other.path).substr(module.size()).starts_with("Reshape");
    });
  }

  void check_normalized_part(const Node& node) {
    const Shape& x = shape(node);
    const std::int64_t axis = node.attributes.integer("axis");
    std::int64_t values = 1;
    for (std::size_t i = static_cast<std::size_t>(axis); i < x.size(); ++i) values *= x[i];
    if (values != 1) return;
    const std::string_view op = operator_in_file(node);
    const bool of_instances = op == "InstanceNormalization" || op == "GroupNormalization";
    if (of_instances && (of_.samples == 1 || !normalises_groups(node))) {
      refuse(node, std::string(op) + " of one value: each result is the bias, whatever the input",
             "more than one value for each channel or group of a sample", to_string(x),
             "feed larger images or sequences, or export the model without this normalization");
      return;
    }
    warn(node, "a normalization of one value: each result is the bias, whatever the input");
  }

  void check_reduction(const Node& node) {
    const TensorType& y = graph_.type(node.outputs[0]);
    if (element_count(shape(node)) != 0 || y.elements() == 0) return;
    const std::string_view op = node.op->name;
    if (op == "ReduceMax" || op == "ReduceMin")
      refuse(node, std::string(op) + " of nothing has no value", "an axis with elements",
             to_string(shape(node)), "feed longer sequences, or export the model for these");
    else if (op == "ReduceMean")
      warn(node, "the mean of nothing is nan");
  }

  void check_division(const Node& node) {
    const Value& below = graph_.value(node.inputs[1]);
    if (below.kind != ValueKind::constant || below.constant == nullptr) return;
    if (!is_float(below.type.dtype)) return;
    bool has_zero = false;
    constexpr std::int64_t most_elements = 1 << 16;
    for (std::int64_t i = 0; i < std::min(below.type.elements(), most_elements); ++i)
      has_zero = has_zero || below.constant->number(i) == 0;
    if (has_zero)
      warn(node,
           "divides by a constant 0, as the deviation of one value does (correction = 1): "
           "the result is nan or infinite");
  }

  /// Whether every key of some query has a score that softmax makes 0.
  static bool hides_a_row(const HostTensor& mask) {
    if (mask.shape().empty()) return false;
    const std::int64_t keys = mask.shape().back();
    if (keys < 1 || mask.type().elements() > (std::int64_t{1} << 24)) return false;
    const bool is_boolean = mask.dtype() == DType::boolean;
    for (std::int64_t row = 0; row < mask.type().elements() / keys; ++row) {
      bool hides_all = true;
      for (std::int64_t key = 0; key < keys && hides_all; ++key) {
        const double value = mask.number(row * keys + key);
        hides_all = is_boolean ? value == 0 : value == -std::numeric_limits<double>::infinity();
      }
      if (hides_all) return true;
    }
    return false;
  }

  void check_mask(const Node& node, std::size_t input) {
    if (input >= node.inputs.size() || !node.inputs[input]) return;
    const Value& mask = graph_.value(node.inputs[input]);
    if (mask.constant == nullptr || mask.kind != ValueKind::constant) return;
    if (!hides_a_row(*mask.constant)) return;
    const bool gives_zeros = node.op->name == std::string_view("Attention");
    warn(node, std::string("the mask hides every key of a query, whose result is then ") +
                   (gives_zeros ? "0" : "nan"));
  }

  void check_masked_scores(const Node& node) {
    const Value& scores = graph_.value(node.inputs[0]);
    if (!scores.producer) return;
    const Node& producer = graph_.node(scores.producer);
    if (producer.op->name != std::string_view("Add")) return;
    const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
    if (axis + 1 != scores.type.shape.size()) return;
    for (std::size_t i = 0; i < producer.inputs.size(); ++i) check_mask(producer, i);
  }

  const Graph& graph_;
  const TrainingCase& of_;
  TrainingModeReport report_;
};

}  // namespace

TrainingModeReport check_training_mode(const Graph& forward, const TrainingCase& of) {
  return TrainingMode(forward, of).run();
}

}  // namespace tandem
