// Weights and computation in float16, as the usual converters make it: inputs and outputs of the
// model stay float32, and so do normalizations, softmax, reductions and what does not take float16.
// Casts stand where the two meet, one for each value.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>

#include "importer/export/graph_edits.h"
#include "importer/export/transformation.h"
#include "importer/file/initializers.h"
#include "importer/file/tensor_data.h"
#include "onnx/defs/schema.h"
#include "onnx/shape_inference/implementation.h"

namespace tandem::importer::transformations {
namespace {

constexpr double largest_half = 65504;                // the greatest finite float16
constexpr double least_half = 5.9604644775390625e-8;  // the least above 0, 2^-24

/// Sums over many elements, exponentials, statistics, numbers of places: these lose too much. And
/// operators whose attributes say which type they make.
constexpr std::array<std::string_view, 49> stays_float32{"BatchNormalization",
                                                         "InstanceNormalization",
                                                         "LayerNormalization",
                                                         "GroupNormalization",
                                                         "RMSNormalization",
                                                         "LpNormalization",
                                                         "MeanVarianceNormalization",
                                                         "LRN",
                                                         "Softmax",
                                                         "LogSoftmax",
                                                         "Hardmax",
                                                         "SoftmaxCrossEntropyLoss",
                                                         "NegativeLogLikelihoodLoss",
                                                         "ReduceSum",
                                                         "ReduceMean",
                                                         "ReduceMax",
                                                         "ReduceMin",
                                                         "ReduceProd",
                                                         "ReduceL1",
                                                         "ReduceL2",
                                                         "ReduceLogSum",
                                                         "ReduceLogSumExp",
                                                         "ReduceSumSquare",
                                                         "GlobalAveragePool",
                                                         "GlobalLpPool",
                                                         "LpPool",
                                                         "CumSum",
                                                         "CumProd",
                                                         "Range",
                                                         "Resize",
                                                         "Upsample",
                                                         "RoiAlign",
                                                         "MaxRoiPool",
                                                         "TopK",
                                                         "NonMaxSuppression",
                                                         "QuantizeLinear",
                                                         "DequantizeLinear",
                                                         "RandomNormal",
                                                         "RandomNormalLike",
                                                         "RandomUniform",
                                                         "RandomUniformLike",
                                                         "Multinomial",
                                                         "Constant",
                                                         "HannWindow",
                                                         "HammingWindow",
                                                         "BlackmanWindow",
                                                         "MelWeightMatrix",
                                                         "DFT",
                                                         "STFT"};

/// Element types of tensors by name, as far as ONNX can tell them.
std::unordered_map<std::string, int> element_types(const onnx::ModelProto& model) {
  onnx::ModelProto copy = model;
  try {
    onnx::shape_inference::InferShapes(copy);
  } catch (const std::exception&) {  // then fewer are known, and what reads the others stays
  }
  std::unordered_map<std::string, int> types;
  const auto add = [&](const auto& infos) {
    for (const onnx::ValueInfoProto& info : infos) {
      if (info.type().has_tensor_type())
        types.emplace(info.name(), info.type().tensor_type().elem_type());
    }
  };
  add(copy.graph().input());
  add(copy.graph().value_info());
  add(copy.graph().output());
  for (const auto& tensor : copy.graph().initializer())
    types.emplace(tensor.name(), tensor.data_type());
  return types;
}

bool takes_half(const onnx::OpSchema::FormalParameter& parameter) {
  const auto& types = parameter.GetTypes();
  return std::any_of(types.begin(), types.end(),
                     [](const std::string* type) { return *type == "tensor(float16)"; });
}

/// The schema's parameter for input or output `i`; a variadic last one covers all further ones.
/// Null where there is none.
const onnx::OpSchema::FormalParameter* parameter_at(
    const std::vector<onnx::OpSchema::FormalParameter>& all, int i) {
  if (all.empty()) return nullptr;
  const auto at = static_cast<std::size_t>(i);
  if (at < all.size()) return &all[at];
  return all.back().GetOption() == onnx::OpSchema::Variadic ? &all.back() : nullptr;
}

class HalfPrecision {
 public:
  explicit HalfPrecision(ExportedModel& model)
      : model_(model), graph_(*model.proto.mutable_graph()), names_(graph_) {
    for (const auto& import : model.proto.opset_import()) {
      if (domain_of(import.domain()).empty()) version_ = static_cast<int>(import.version());
    }
  }

  void run() {
    constants_to_initializers();
    types_ = element_types(model_.proto);
    for (const onnx::TensorProto& tensor : graph_.initializer()) {
      if (tensor.data_type() == onnx::TensorProto::FLOAT) values_[tensor.name()].is_weight = true;
    }
    choose();
    find_needs();
    convert_weights();
    rewrite();
    forget_value_types(graph_);
    model_.notes.push_back(fmt::format(
        "float16: {} of {} operators{}", halves_, graph_nodes_,
        clipped_ > 0 ? fmt::format("; {} weights beyond its range were clipped", clipped_) : ""));
  }

 private:
  struct Value {
    bool is_weight = false;   // can have any type at no cost
    bool is_half = false;     // its operator makes a half
    bool needs_half = false;  // some reader wants a half
    bool needs_float = false;
    std::string half_name;  // once both are there
    bool has_both() const { return needs_half && needs_float; }
  };

  bool is_float32(const std::string& name) const {
    const auto found = types_.find(name);
    return found != types_.end() && found->second == onnx::TensorProto::FLOAT;
  }

  /// Constants of float32 are weights like others.
  void constants_to_initializers() {
    std::vector<std::pair<std::string, HostTensor>> made;
    auto& nodes = *graph_.mutable_node();
    int kept = 0;
    for (int i = 0; i < nodes.size(); ++i) {
      const bool is_constant = nodes.Get(i).op_type() == "Constant" &&
                               domain_of(nodes.Get(i).domain()).empty() &&
                               take_constant(nodes.Get(i), made);
      if (is_constant) continue;
      if (kept != i) nodes.SwapElements(kept, i);
      ++kept;
    }
    nodes.DeleteSubrange(kept, nodes.size() - kept);
    for (const auto& [name, values] : made) add_initializer(model_.proto, name, values);
  }
  bool take_constant(const onnx::NodeProto& node,
                     std::vector<std::pair<std::string, HostTensor>>& made) const {
    for (const auto& output : graph_.output()) {
      if (output.name() == node.output(0)) return false;
    }
    if (const auto* value = find_attribute(node, "value");
        value != nullptr && value->has_t() && value->t().data_type() == onnx::TensorProto::FLOAT) {
      made.emplace_back(node.output(0),
                        read_tensor(value->t(), model_.content, node.output(0)).clone());
    } else if (const auto* number = find_attribute(node, "value_float")) {
      made.emplace_back(node.output(0), HostTensor::from<float>({}, {number->f()}));
    } else if (const auto* numbers = find_attribute(node, "value_floats")) {
      const std::vector<float> values(numbers->floats().begin(), numbers->floats().end());
      made.emplace_back(node.output(0), HostTensor::from({numbers->floats_size()}, values));
    } else {
      return false;
    }
    return true;
  }

  // -------------------------------------------------------------- which operators

  void choose() {
    for (const onnx::NodeProto& node : graph_.node()) {
      const bool is_half = computes_in_half(node);
      half_.push_back(is_half);
      if (is_half) ++halves_;
      for (const std::string& output : node.output())
        values_[output].is_half = is_half && is_float32(output);
    }
    graph_nodes_ = graph_.node_size();
  }

  const onnx::OpSchema* schema_of(const onnx::NodeProto& node) const {
    return onnx::OpSchemaRegistry::Schema(node.op_type(), version_, "");
  }

  bool computes_in_half(const onnx::NodeProto& node) const {
    if (!domain_of(node.domain()).empty()) return false;
    if (std::find(stays_float32.begin(), stays_float32.end(), node.op_type()) !=
        stays_float32.end())
      return false;
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g() || attribute.graphs_size() > 0) return false;
    }
    const onnx::OpSchema* schema = schema_of(node);
    if (schema == nullptr) return false;
    bool makes_float = false, reads_float = false, reads_half_alone = true;
    for (int i = 0; i < node.output_size(); ++i) {
      const std::string& name = node.output(i);
      if (name.empty()) continue;
      if (types_.count(name) == 0) return false;
      if (!is_float32(name)) continue;
      const auto* parameter = parameter_at(schema->outputs(), i);
      if (parameter == nullptr || !takes_half(*parameter)) return false;
      makes_float = true;
    }
    for (int i = 0; i < node.input_size(); ++i) {
      const std::string& name = node.input(i);
      if (name.empty()) continue;
      if (types_.count(name) == 0) return false;
      if (!reads_in_half(*schema, node, i)) continue;
      reads_float = true;
      const auto value = values_.find(name);
      const bool is_half =
          value != values_.end() && (value->second.is_half || value->second.is_weight);
      reads_half_alone = reads_half_alone && is_half;
    }
    // What makes no floats (a comparison, a shape) reads them as they are.
    return makes_float || (reads_float && reads_half_alone);
  }

  /// An input of float32 that may be float16; others, such as Resize's scales, may not.
  bool reads_in_half(const onnx::OpSchema& schema, const onnx::NodeProto& node, int i) const {
    if (!is_float32(node.input(i))) return false;
    const auto* parameter = parameter_at(schema.inputs(), i);
    return parameter != nullptr && takes_half(*parameter);
  }

  // -------------------------------------------------------------- who needs what

  void find_needs() {
    for (int n = 0; n < graph_.node_size(); ++n) {
      const onnx::NodeProto& node = graph_.node(n);
      if (!half_[static_cast<std::size_t>(n)]) {
        for (const std::string& name : reads_of(node)) values_[name].needs_float = true;
        continue;
      }
      const onnx::OpSchema& schema = *schema_of(node);
      for (int i = 0; i < node.input_size(); ++i) {
        Value& value = values_[node.input(i)];
        (reads_in_half(schema, node, i) ? value.needs_half : value.needs_float) = true;
      }
    }
    for (const auto& output : graph_.output()) values_[output.name()].needs_float = true;
  }

  /// The float16 of a value; made up at the first call.
  const std::string& half_name(const std::string& name) {
    Value& value = values_[name];
    const bool is_other = value.has_both() || (!value.is_half && !value.is_weight);
    if (!is_other) return name;
    if (value.half_name.empty()) value.half_name = names_.make(name + "_fp16");
    return value.half_name;
  }

  // -------------------------------------------------------------- what becomes of them

  HostTensor to_half(const HostTensor& values) {
    HostTensor clipped = values.clone();
    bool is_clipped = false;
    for (float& x : clipped.as<float>()) {
      const double size = std::abs(static_cast<double>(x));
      if (std::isfinite(x) && size > largest_half) {
        x = std::copysign(static_cast<float>(largest_half), x);
        is_clipped = true;
      } else if (size > 0 && size < least_half) {  // 0 in its place would divide by zero
        x = std::copysign(static_cast<float>(least_half), x);
      }
    }
    if (is_clipped) ++clipped_;
    return clipped.converted(DType::float16);
  }

  void convert_weights() {
    std::vector<std::pair<std::string, HostTensor>> made;
    for (onnx::TensorProto& tensor : *graph_.mutable_initializer()) {
      if (tensor.data_type() != onnx::TensorProto::FLOAT) continue;
      const Value& value = values_[tensor.name()];
      if (!value.needs_half) continue;
      HostTensor half = to_half(read_tensor(tensor, model_.content, tensor.name()));
      if (value.has_both())
        made.emplace_back(half_name(tensor.name()), std::move(half));
      else
        replace_initializer(tensor, half);
      for (onnx::ValueInfoProto& input : *graph_.mutable_input()) {
        if (input.name() == tensor.name() && !value.has_both())
          input.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT16);
      }
    }
    for (const auto& [name, values] : made) add_initializer(model_.proto, name, values);
  }

  static void add_cast(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                       const std::string& from, const std::string& to, std::int32_t type) {
    onnx::NodeProto& cast = *nodes.Add();
    cast.set_op_type("Cast");
    cast.set_name(to + "_cast");
    cast.add_input(from);
    cast.add_output(to);
    onnx::AttributeProto& attribute = *cast.add_attribute();
    attribute.set_name("to");
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(type);
  }

  /// Types that attributes give to results.
  static void set_result_type(onnx::NodeProto& node) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      const bool is_type = (node.op_type() == "Cast" && attribute.name() == "to") ||
                           attribute.name() == "dtype" || attribute.name() == "output_dtype";
      if (is_type && attribute.i() == onnx::TensorProto::FLOAT)
        attribute.set_i(onnx::TensorProto::FLOAT16);
    }
  }

  void fill_in_half(onnx::NodeProto& node) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.name() != "value" || !attribute.has_t()) continue;
      const HostTensor value = to_half(read_tensor(attribute.t(), model_.content, node.output(0)));
      replace_initializer(*attribute.mutable_t(), value);
      return;
    }
    onnx::AttributeProto& value = *node.add_attribute();
    value.set_name("value");
    value.set_type(onnx::AttributeProto::TENSOR);
    replace_initializer(*value.mutable_t(),
                        HostTensor::from<float>({1}, {0.0f}).converted(DType::float16));
  }

  void rewrite() {
    google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
    const auto initializer_names = [&] {
      std::unordered_set<std::string> all;
      for (const auto& tensor : graph_.initializer()) all.insert(tensor.name());
      return all;
    }();
    const auto narrow = [&](const std::string& name) {
      if (is_float32(name) && values_[name].needs_half)
        add_cast(nodes, name, half_name(name), onnx::TensorProto::FLOAT16);
    };
    for (const auto& input : graph_.input()) {
      if (initializer_names.count(input.name()) == 0) narrow(input.name());
    }
    for (int n = 0; n < graph_.node_size(); ++n) {
      const bool is_half = half_[static_cast<std::size_t>(n)];
      onnx::NodeProto& node = *nodes.Add();
      node = graph_.node(n);
      const onnx::NodeProto& old = graph_.node(n);
      if (!is_half) {
        for (const std::string& output : old.output()) narrow(output);
        continue;
      }
      const onnx::OpSchema& schema = *schema_of(old);
      for (int i = 0; i < old.input_size(); ++i) {
        if (!old.input(i).empty() && reads_in_half(schema, old, i))
          node.set_input(i, half_name(old.input(i)));
      }
      if (std::any_of(old.output().begin(), old.output().end(),
                      [&](const std::string& name) { return is_float32(name); })) {
        set_result_type(node);
        if (old.op_type() == "ConstantOfShape") fill_in_half(node);
      }
      widen(old, node, nodes);
    }
    graph_.mutable_node()->Swap(&nodes);
  }

  /// Results that somebody reads as float32 are made under another name and cast to their own.
  void widen(const onnx::NodeProto& old, onnx::NodeProto& node,
             google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
    std::vector<std::string> cast;
    for (int i = 0; i < old.output_size(); ++i) {
      const std::string& name = old.output(i);
      if (name.empty() || !is_float32(name) || !values_[name].needs_float) continue;
      Value& value = values_[name];
      value.needs_half = true;  // under its other name
      node.set_output(i, half_name(name));
      cast.push_back(name);
    }
    for (const std::string& name : cast)
      add_cast(nodes, half_name(name), name, onnx::TensorProto::FLOAT);
  }

  ExportedModel& model_;
  onnx::GraphProto& graph_;
  FreeNames names_;
  int version_ = 1;
  std::unordered_map<std::string, int> types_;  // element types, by value
  std::unordered_map<std::string, Value> values_;
  std::vector<char> half_;  // by node
  int halves_ = 0, graph_nodes_ = 0, clipped_ = 0;
};

}  // namespace

extern const Transformation half_precision;
const Transformation half_precision{
    "fp16", [](const ExportOptions& options) { return options.fp16; },
    [](ExportedModel& model, const ExportOptions&) { HalfPrecision(model).run(); }};

}  // namespace tandem::importer::transformations
