#include "importer/weights/attribute_weights.h"

#include <algorithm>
#include <unordered_set>

#include "importer/file/onnx_content.h"
#include "importer/weights/constant_weights.h"

namespace tandem::importer {
namespace {

using NameSet = std::unordered_set<std::string>;

int count_of(const onnx::NodeProto& node, const char* name) {
  const onnx::AttributeProto* attribute = find_attribute(node, name);
  if (attribute == nullptr) return 0;
  return std::max({attribute->floats_size(), attribute->ints_size(), attribute->strings_size()});
}

bool is_linear(const onnx::NodeProto& node) {
  return domain_of(node.domain()) == "ai.onnx.ml" &&
         (node.op_type() == "LinearClassifier" || node.op_type() == "LinearRegressor");
}

/// How many rows of coefficients, one for each score, the node has; 0 where that is not clear.
int rows_of(const onnx::NodeProto& node) {
  if (node.op_type() == "LinearClassifier") return count_of(node, "intercepts");
  const onnx::AttributeProto* targets = find_attribute(node, "targets");
  const std::int64_t rows = targets == nullptr ? 1 : targets->i();
  return rows < 1 || rows > count_of(node, "coefficients") ? 0 : static_cast<int>(rows);
}

bool is_mirrored(const onnx::AttributeProto& numbers) {
  const int half = numbers.floats_size() / 2;
  for (int i = 0; i < half; ++i) {
    if (numbers.floats(i) != -numbers.floats(half + i)) return false;
  }
  return true;
}

/// Two classes of which each has the probability that the other one leaves, because its scores are
/// minus those of the other: so skl2onnx writes one row of coefficients. Trained apart from each
/// other the rows would be another model.
bool has_mirrored_rows(const onnx::NodeProto& node) {
  const onnx::AttributeProto* transform = find_attribute(node, "post_transform");
  return node.op_type() == "LinearClassifier" && rows_of(node) == 2 && transform != nullptr &&
         transform->s() == "LOGISTIC" && is_mirrored(*find_attribute(node, "coefficients")) &&
         is_mirrored(*find_attribute(node, "intercepts"));
}

class Lifting {
 public:
  explicit Lifting(onnx::GraphProto& graph) : graph_(graph) {
    for (const auto& input : graph.input()) taken_.insert(input.name());
    for (const auto& tensor : graph.initializer()) taken_.insert(tensor.name());
    for (const auto& node : graph.node()) taken_.insert(node.output().begin(), node.output().end());
  }

  AttributeWeights run() {
    for (onnx::NodeProto& node : *graph_.mutable_node()) {
      const int rows = is_linear(node) ? rows_of(node) : 0;
      const int count = count_of(node, "coefficients");
      if (rows == 0 || node.input_size() != 1 || node.output_size() == 0 || count % rows != 0 ||
          count == 0)
        continue;
      const bool mirrored = has_mirrored_rows(node);
      lift(node, "coefficients", {rows, count / rows}, mirrored);
      if (count_of(node, "intercepts") == rows) lift(node, "intercepts", {rows}, mirrored);
    }
    return std::move(weights_);
  }

 private:
  void lift(onnx::NodeProto& node, const char* attribute, Shape shape, bool mirrored) {
    const auto& numbers = find_attribute(node, attribute)->floats();
    if (numbers.empty()) return;
    if (mirrored) shape[0] = 1;
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name(
        free_name((node.name().empty() ? node.output(0) : node.name()) + ":" + attribute));
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (std::int64_t extent : shape) tensor.add_dims(extent);
    tensor.mutable_float_data()->Add(numbers.begin() + (mirrored ? numbers.size() / 2 : 0),
                                     numbers.end());
    node.add_input(tensor.name());
    weights_[tensor.name()] = {node.output(0), attribute, mirrored};
  }

  std::string free_name(std::string wanted) {
    while (!taken_.insert(wanted).second) wanted += "_";
    return wanted;
  }

  onnx::GraphProto& graph_;
  NameSet taken_;
  AttributeWeights weights_;
};

}  // namespace

AttributeWeights lift_attribute_weights(onnx::ModelProto& model) {
  return Lifting(*model.mutable_graph()).run();
}

const AttributeWeight* attribute_weight(const AttributeWeights& weights,
                                        const onnx::NodeProto& node, int i) {
  if (!is_linear(node) || i < 1 || i >= node.input_size()) return nullptr;
  const auto at = weights.find(node.input(i));
  return at == weights.end() || at->second.output != node.output(0) ? nullptr : &at->second;
}

onnx::NodeProto without_attribute_weights(const AttributeWeights& weights,
                                          const onnx::NodeProto& node) {
  onnx::NodeProto result = node;
  while (attribute_weight(weights, result, result.input_size() - 1) != nullptr)
    result.mutable_input()->RemoveLast();
  return result;
}

void return_attribute_weights(
    onnx::ModelProto& model, const AttributeWeights& weights,
    const std::function<HostTensor(const onnx::TensorProto& initializer)>& value_of) {
  if (weights.empty()) return;
  return_constant_weights(model, weights, value_of);
  onnx::GraphProto& graph = *model.mutable_graph();
  std::unordered_map<std::string, HostTensor> values;
  auto& tensors = *graph.mutable_initializer();
  const auto is_lifted = [&](const onnx::TensorProto& tensor) {
    return weights.count(tensor.name()) > 0;
  };
  for (const onnx::TensorProto& tensor : tensors) {
    if (is_lifted(tensor)) values[tensor.name()] = value_of(tensor).converted(DType::float32);
  }
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(), is_lifted), tensors.end());
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    if (!is_linear(node)) continue;
    for (int i = 1; i < node.input_size(); ++i) {
      const AttributeWeight* weight = attribute_weight(weights, node, i);
      if (weight == nullptr) continue;
      const HostTensor& value = values.at(node.input(i));
      for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.name() != weight->attribute) continue;
        attribute.clear_floats();
        if (weight->mirrored) {
          for (float number : value.as<float>()) attribute.add_floats(-number);
        }
        for (float number : value.as<float>()) attribute.add_floats(number);
      }
    }
    node = without_attribute_weights(weights, node);
  }
}

}  // namespace tandem::importer
