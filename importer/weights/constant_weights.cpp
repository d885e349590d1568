#include "importer/weights/constant_weights.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "importer/file/erase_items.h"
#include "importer/file/onnx_content.h"
#include "importer/file/tensor_data.h"
#include "importer/operators/all.h"
#include "importer/weights/weight_places.h"

namespace tandem::importer {
namespace {

constexpr std::string_view value_attribute = "value";

using Names = std::unordered_set<std::string>;

onnx::AttributeProto* value_of_constant(onnx::NodeProto& node) {
  if (node.op_type() != "Constant" || !domain_of(node.domain()).empty() || node.output_size() != 1)
    return nullptr;
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.name() == value_attribute && attribute.has_t()) return &attribute;
  }
  return nullptr;
}

bool is_float_tensor(const onnx::TensorProto& tensor) {
  const auto dtype = dtype_from_onnx(tensor.data_type());
  return dtype && is_float(*dtype);
}

bool has_elements(const onnx::TensorProto& tensor) {
  const auto& extents = tensor.dims();
  return std::any_of(extents.begin(), extents.end(), [](std::int64_t n) { return n > 1; });
}

// Running statistics, and operands of arithmetic: scales, shifts and tokens that modules have by
// themselves.
Names operands(const onnx::GraphProto& graph) {
  static const std::unordered_set<std::string> operators{"Add",    "Concat", "Div",
                                                         "Expand", "Mul",    "Sub"};
  Names names;
  for (const onnx::NodeProto& node : graph.node()) {
    const Lowering* lowering = find_lowering(lowering_name(node));
    for (int i = 0; i < node.input_size(); ++i) {
      const bool is_statistic =
          lowering != nullptr && lowering->statistics.has(static_cast<std::size_t>(i));
      if (is_statistic || operators.count(node.op_type()) > 0) names.insert(node.input(i));
    }
  }
  return names;
}

Names taken_names(const onnx::GraphProto& graph) {
  Names names;
  for (const auto& input : graph.input()) names.insert(input.name());
  for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const auto& node : graph.node()) names.insert(node.output().begin(), node.output().end());
  return names;
}

}  // namespace

AttributeWeights lift_constant_weights(onnx::ModelProto& model) {
  AttributeWeights weights;
  onnx::GraphProto& graph = *model.mutable_graph();
  const ModulePaths modules(model);
  const std::vector<bool> all(static_cast<std::size_t>(graph.node_size()), true);
  const WeightPlaces places(graph, all, modules);
  const Names used = operands(graph);
  Names taken = taken_names(graph), results;
  for (const auto& output : graph.output()) results.insert(output.name());
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    onnx::AttributeProto* value = value_of_constant(node);
    if (value == nullptr || !is_float_tensor(value->t())) continue;
    const std::string name = node.output(0);
    const auto rank = static_cast<std::size_t>(value->t().dims_size());
    const bool is_operand =
        used.count(name) > 0 && !is_generated_name(name) && has_elements(value->t());
    if (results.count(name) > 0 || (places.find(name, rank).empty() && !is_operand)) continue;
    std::string free = name + ":constant";
    while (!taken.insert(free).second) free += "_";
    onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.Swap(value->mutable_t());
    tensor.set_name(name);
    node.set_output(0, free);
    weights[name] = {std::move(free), std::string(value_attribute), false};
  }
  return weights;
}

bool is_constant_weight(const AttributeWeights& weights, const std::string& name) {
  const auto at = weights.find(name);
  return at != weights.end() && at->second.attribute == value_attribute;
}

void return_constant_weights(
    onnx::ModelProto& model, const AttributeWeights& weights,
    const std::function<HostTensor(const onnx::TensorProto& initializer)>& value_of) {
  onnx::GraphProto& graph = *model.mutable_graph();
  std::unordered_map<std::string, onnx::NodeProto*> nodes;
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    if (value_of_constant(node) != nullptr) nodes[node.output(0)] = &node;
  }
  const auto is_lifted = [&](const onnx::TensorProto& tensor) {
    return is_constant_weight(weights, tensor.name());
  };
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    if (!is_lifted(tensor)) continue;
    onnx::NodeProto& node = *nodes.at(weights.at(tensor.name()).output);
    const HostTensor value = value_of(tensor);
    onnx::TensorProto& own = *value_of_constant(node)->mutable_t();
    own.CopyFrom(tensor);
    own.clear_name();
    write_tensor(own, value);
    node.set_output(0, tensor.name());
  }
  erase_items(*graph.mutable_initializer(), is_lifted);
}

}  // namespace tandem::importer
