// BatchNormalization in inference form goes into the weights of the Conv, ConvTranspose or Gemm
// whose only reader it is: y = s (W x + b − mean) + beta with s = gamma / sqrt(var + epsilon) is W'
// = s W and b' = s (b − mean) + beta. Computed in double and rounded once.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "importer/export/graph_edits.h"
#include "importer/export/transformation.h"
#include "importer/file/tensor_data.h"

namespace tandem::importer::transformations {
namespace {

using Numbers = std::vector<double>;

float float_attribute(const onnx::NodeProto& node, const char* name, float otherwise) {
  const onnx::AttributeProto* found = find_attribute(node, name);
  return found == nullptr ? otherwise : found->f();
}
std::int64_t integer_attribute(const onnx::NodeProto& node, const char* name,
                               std::int64_t otherwise) {
  const onnx::AttributeProto* found = find_attribute(node, name);
  return found == nullptr ? otherwise : found->i();
}

/// y = scale x + shift, channel by channel.
struct ChannelMap {
  Numbers scale, shift;
};

/// Where the channels of results are in a weight.
struct WeightLayout {
  std::int64_t channels = 0;
  std::int64_t before = 1, after = 1;  // elements: the weight is [before, own, after]
  std::int64_t own = 0;                // channels along the axis: those of a group
  std::int64_t rows_a_group = 0;       // rows of `before` in a group; 0: one group
  std::int64_t channel(std::int64_t index) const {
    const std::int64_t group = rows_a_group > 0 ? index / (own * after) / rows_a_group : 0;
    return group * own + index / after % own;
  }
};

std::optional<WeightLayout> layout_of(const onnx::NodeProto& node, const Shape& shape) {
  const auto product = [&](std::size_t first, std::size_t last) {
    std::int64_t elements = 1;
    for (std::size_t i = first; i < last; ++i) elements *= shape[i];
    return elements;
  };
  if (node.op_type() == "Gemm") {
    if (shape.size() != 2) return std::nullopt;
    const bool transposed = integer_attribute(node, "transB", 0) != 0;
    if (transposed) return WeightLayout{shape[0], 1, shape[1], shape[0]};
    return WeightLayout{shape[1], shape[0], 1, shape[1]};
  }
  if (shape.size() < 3) return std::nullopt;
  if (node.op_type() == "Conv")
    return WeightLayout{shape[0], 1, product(1, shape.size()), shape[0]};
  const std::int64_t groups = integer_attribute(node, "group", 1);
  if (groups < 1 || shape[0] % groups != 0) return std::nullopt;
  return WeightLayout{shape[1] * groups, shape[0], product(2, shape.size()), shape[1],
                      shape[0] / groups};
}

class BatchNormFolder {
 public:
  explicit BatchNormFolder(ExportedModel& model)
      : model_(model),
        graph_(*model.proto.mutable_graph()),
        readers_(reader_counts(graph_)),
        names_(graph_) {
    for (onnx::TensorProto& tensor : *graph_.mutable_initializer())
      initializers_[tensor.name()] = &tensor;
    for (const auto& import : model.proto.opset_import()) {
      if (domain_of(import.domain()).empty()) version_ = static_cast<int>(import.version());
    }
    for (onnx::NodeProto& node : *graph_.mutable_node()) {
      for (const std::string& output : node.output()) producers_[output] = &node;
    }
  }

  void run() {
    int all = 0, folded = 0;
    std::vector<bool> gone(static_cast<std::size_t>(graph_.node_size()), false);
    for (int i = 0; i < graph_.node_size(); ++i) {
      const onnx::NodeProto& node = graph_.node(i);
      if (node.op_type() != "BatchNormalization" || !domain_of(node.domain()).empty()) continue;
      ++all;
      if (!fold(node)) continue;
      ++folded;
      gone[static_cast<std::size_t>(i)] = true;
    }
    // Initializers that are added may move the others: they are added once all are read.
    for (const auto& [name, values] : added_) add_initializer(model_.proto, name, values);
    renew_nodes(gone);
    drop_unread_initializers(graph_, may_be_unread_);
    if (folded > 0) forget_value_types(graph_);
    model_.notes.push_back(
        fmt::format("folded {} of {} BatchNormalization into the weights before", folded, all));
  }

 private:
  onnx::TensorProto* initializer(const onnx::NodeProto& node, int input) const {
    if (node.input_size() <= input) return nullptr;
    const auto found = initializers_.find(node.input(input));
    return found == initializers_.end() ? nullptr : found->second;
  }
  HostTensor values_of(const onnx::TensorProto& tensor) const {
    return read_tensor(tensor, model_.content, tensor.name()).clone();
  }
  /// The values of an input; nothing where it is no initializer with that many elements.
  std::optional<Numbers> numbers(const onnx::NodeProto& node, int input,
                                 std::int64_t elements) const {
    const onnx::TensorProto* tensor = initializer(node, input);
    if (tensor == nullptr || !dtype_from_onnx(tensor->data_type())) return std::nullopt;
    const HostTensor values = values_of(*tensor);
    if (!is_float(values.dtype()) || values.type().elements() != elements) return std::nullopt;
    Numbers result;
    for (std::int64_t i = 0; i < elements; ++i) result.push_back(values.number(i));
    return result;
  }

  std::optional<ChannelMap> map_of(const onnx::NodeProto& norm, std::int64_t channels) const {
    if (integer_attribute(norm, "spatial", 1) == 0) return std::nullopt;  // before opset 9
    const auto gamma = numbers(norm, 1, channels), beta = numbers(norm, 2, channels);
    const auto mean = numbers(norm, 3, channels), variance = numbers(norm, 4, channels);
    if (!gamma || !beta || !mean || !variance) return std::nullopt;
    const double epsilon = float_attribute(norm, "epsilon", 1e-5f);
    ChannelMap map;
    for (std::size_t c = 0; c < gamma->size(); ++c) {
      map.scale.push_back((*gamma)[c] / std::sqrt((*variance)[c] + epsilon));
      map.shift.push_back((*beta)[c] - map.scale[c] * (*mean)[c]);
    }
    return map;
  }

  /// The operator whose result nothing but the BatchNormalization reads.
  onnx::NodeProto* operator_before(const onnx::NodeProto& norm) const {
    if (norm.input_size() < 5 || readers_.at(norm.input(0)) != 1) return nullptr;
    const auto found = producers_.find(norm.input(0));
    if (found == producers_.end() || !domain_of(found->second->domain()).empty()) return nullptr;
    const std::string& op = found->second->op_type();
    const bool may_fold = op == "Conv" || op == "ConvTranspose" || op == "Gemm";
    return may_fold ? found->second : nullptr;
  }

  bool fold(const onnx::NodeProto& norm) {
    onnx::NodeProto* node = operator_before(norm);
    onnx::TensorProto* weight = node == nullptr ? nullptr : initializer(*node, 1);
    if (weight == nullptr || !dtype_from_onnx(weight->data_type())) return false;
    const HostTensor before = values_of(*weight);
    const std::optional<WeightLayout> layout = layout_of(*node, before.shape());
    if (!layout || layout->channels < 1 || !is_float(before.dtype())) return false;
    const std::optional<ChannelMap> map = map_of(norm, layout->channels);
    if (!map) return false;
    const bool has_bias = node->input_size() > 2 && !node->input(2).empty();
    const bool is_gemm = node->op_type() == "Gemm";
    std::optional<Numbers> bias = Numbers(map->scale.size(), 0.0);
    if (has_bias) bias = known_bias(*node, layout->channels);
    if (!bias && version_ < 7) return false;  // operators do not broadcast yet
    const double beta = is_gemm ? float_attribute(*node, "beta", 1) : 1;

    HostTensor scaled(TensorType{DType::float64, before.shape()});
    for (std::int64_t i = 0; i < before.type().elements(); ++i)
      scaled.as<double>()[static_cast<std::size_t>(i)] =
          before.number(i) * map->scale[static_cast<std::size_t>(layout->channel(i))];
    set_input(*node, 1, scaled.converted(before.dtype()), node->input(1) + "_folded");
    const auto of_channels = [&](const Numbers& values) {
      return HostTensor::from({layout->channels}, values).converted(before.dtype());
    };
    if (bias) {
      for (std::size_t c = 0; c < bias->size(); ++c)
        (*bias)[c] = map->scale[c] * beta * (*bias)[c] + map->shift[c];
      set_input(*node, 2, of_channels(*bias), node->input(1) + "_bias");
    } else {
      Numbers factors = map->scale;
      for (double& factor : factors) factor *= beta;
      compute_bias(*node, of_channels(factors), of_channels(map->shift));
    }
    if (is_gemm) set_beta_to_one(*node);
    for (int i = 1; i < 5; ++i) may_be_unread_.insert(norm.input(i));
    node->set_output(0, norm.output(0));
    producers_[norm.output(0)] = node;
    return true;
  }

  /// The node's bias; nothing where it is computed: exporters write zeros so.
  std::optional<Numbers> known_bias(const onnx::NodeProto& node, std::int64_t channels) const {
    const onnx::TensorProto* tensor = initializer(node, 2);
    const bool is_of_rows =
        tensor != nullptr && tensor->dims_size() == 2 && tensor->dims(0) != 1;  // a Gemm has it
    if (is_of_rows) return std::nullopt;
    std::optional<Numbers> bias = numbers(node, 2, channels);
    if (bias || node.op_type() != "Gemm") return bias;
    bias = numbers(node, 2, 1);  // one number for all
    if (bias) bias->resize(static_cast<std::size_t>(channels), (*bias)[0]);
    return bias;
  }

  /// bias' = factors bias + shift, in front of the operator.
  void compute_bias(onnx::NodeProto& node, const HostTensor& factors, const HostTensor& shift) {
    const auto add_node = [&](const char* op, const std::string& of, const HostTensor& with,
                              const std::string& name) {
      const std::string weight = names_.make(name + "_" + op), result = names_.make(name);
      added_.emplace_back(weight, with);
      onnx::NodeProto& made = inserted_[&node].emplace_back();
      made.set_op_type(op);
      made.set_name(result);
      made.add_input(of);
      made.add_input(weight);
      made.add_output(result);
      return result;
    };
    const std::string scaled = add_node("Mul", node.input(2), factors, node.input(2) + "_scaled");
    node.set_input(2, add_node("Add", scaled, shift, node.input(2) + "_folded"));
  }

  /// Changes the initializer in place where nothing else reads it.
  void set_input(onnx::NodeProto& node, int input, const HostTensor& values,
                 const std::string& new_name) {
    while (node.input_size() <= input) node.add_input("");
    onnx::TensorProto* own = initializer(node, input);
    if (own != nullptr && readers_.at(node.input(input)) == 1 &&
        own->data_type() == dtype_to_onnx(values.dtype())) {
      replace_initializer(*own, values);
      return;
    }
    if (own != nullptr) {
      --readers_[node.input(input)];
      may_be_unread_.insert(node.input(input));
    }
    const std::string name = names_.make(new_name);
    added_.emplace_back(name, values);
    readers_[name] = 1;
    node.set_input(input, name);
  }

  static void set_beta_to_one(onnx::NodeProto& node) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.name() == "beta") attribute.set_f(1);
    }
  }

  void renew_nodes(const std::vector<bool>& gone) {
    google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
    for (int i = 0; i < graph_.node_size(); ++i) {
      if (gone[static_cast<std::size_t>(i)]) continue;
      const auto before = inserted_.find(graph_.mutable_node(i));
      if (before != inserted_.end()) {
        for (const onnx::NodeProto& node : before->second) *nodes.Add() = node;
      }
      nodes.Add()->Swap(graph_.mutable_node(i));
    }
    graph_.mutable_node()->Swap(&nodes);
  }

  ExportedModel& model_;
  onnx::GraphProto& graph_;
  ReaderCounts readers_;
  FreeNames names_;
  std::unordered_map<std::string, onnx::TensorProto*> initializers_;
  std::unordered_map<std::string, onnx::NodeProto*> producers_;
  std::unordered_map<const onnx::NodeProto*, std::vector<onnx::NodeProto>> inserted_;
  std::vector<std::pair<std::string, HostTensor>> added_;
  std::unordered_set<std::string> may_be_unread_;
  int version_ = 1;  // version of ai.onnx
};

}  // namespace

extern const Transformation fold_batch_norm;
const Transformation fold_batch_norm{
    "fold_batch_norm", [](const ExportOptions& options) { return options.fold_batch_norm; },
    [](ExportedModel& model, const ExportOptions&) { BatchNormFolder(model).run(); }};

}  // namespace tandem::importer::transformations
