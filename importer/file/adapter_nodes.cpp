#include "importer/file/adapter_nodes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include "importer/file/initializers.h"
#include "importer/file/tensor_data.h"
#include "importer/weights/packed_weights.h"

namespace tandem::importer {
namespace {

constexpr const char* merge_instead = "export with --lora merged, which puts them into the weights";
/// Older files list all initializers among the inputs, and none of these can be fed.
constexpr int oldest_ir_without_inputs = 4;

bool swaps_matrix(const onnx::NodeProto& node) {
  const onnx::AttributeProto* perm = find_attribute(node, "perm");
  return node.op_type() == "Transpose" && domain_of(node.domain()).empty() &&
         (perm == nullptr || (perm->ints_size() == 2 && perm->ints(0) == 1 && perm->ints(1) == 0));
}

class AdapterNodes {
 public:
  AdapterNodes(onnx::ModelProto& model, const std::filesystem::path& file)
      : model_(model),
        graph_(*model.mutable_graph()),
        file_(file),
        packed_(find_packed_weights(model)) {
    for (const onnx::NodeProto& node : graph_.node()) {
      for (const std::string& name : node.output()) names_.insert(name);
    }
    for (const onnx::TensorProto& tensor : graph_.initializer()) names_.insert(tensor.name());
    for (const onnx::ValueInfoProto& input : graph_.input()) names_.insert(input.name());
  }

  /// `others`: names of further initializers that are this weight.
  void add(const WeightAdapters& adapters, const std::vector<std::string>& others) {
    adapters_ = &adapters;
    called_.clear();
    products_ = 0;
    add_to_readers(adapters.weight, false);
    for (const std::string& other : others) add_to_readers(other, false);
    if (products_ == 0) fail("no MatMul, Gemm or Conv of the main graph reads it");
  }

  /// All nodes, with those that were added; each comes after what it reads.
  void finish() {
    google::protobuf::RepeatedPtrField<onnx::NodeProto> all;
    for (int n = 0; n < graph_.node_size(); ++n) {
      *all.Add() = graph_.node(n);
      for (onnx::NodeProto& node : behind_[n]) *all.Add() = std::move(node);
    }
    graph_.mutable_node()->Swap(&all);
  }

 private:
  [[noreturn]] void fail(const std::string& got) const {
    refuse(file_, adapters_->weight, "the adapters of this weight cannot be nodes of the model",
           "a weight that MatMul, Gemm or Conv reads", got, merge_instead);
  }

  std::string unused(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 2; !names_.insert(name).second; ++i) name = wanted + "." + std::to_string(i);
    return name;
  }

  void add_to_readers(const std::string& value, bool transposed) {
    for (int n = 0; n < graph_.node_size(); ++n) {
      const onnx::NodeProto node = graph_.node(n);
      for (int i = 0; i < node.input_size(); ++i) {
        if (node.input(i) != value) continue;
        const std::string& op = node.op_type();
        const bool is_onnx = domain_of(node.domain()).empty();
        const bool product = is_onnx && i == 1 && (op == "MatMul" || op == "Gemm" || op == "Conv");
        const bool unpacks = op == "DequantizeLinear" && i == 0;
        if (product)
          add_to(n, transposed, node.input(0));
        else if (i == 1 && (op == "MatMulNBits" || op == "MatMulBnb4"))
          add_to(n, true, node.input(0));
        else if (i == 1 && op == "MatMulInteger" && is_onnx)
          add_to_dynamic(value, transposed);
        else if (is_onnx && (op == "Identity" || unpacks))  // the weight, under another name
          add_to_readers(node.output(0), transposed);
        else if (!transposed && swaps_matrix(node))
          add_to_readers(node.output(0), true);
        else
          fail((node.name().empty() ? op : node.name()) + " (" + op + ") reads it");
      }
      for (const std::string& inside : reads_of(node)) {
        bool is_input = false;
        for (const std::string& input : node.input()) is_input = is_input || input == inside;
        if (inside == value && !is_input) fail("a graph inside of " + node.op_type() + " reads it");
      }
    }
  }

  // To the last nodes of products as quantize_dynamic writes them.
  void add_to_dynamic(const std::string& weight, bool transposed) {
    bool any = false;
    for (const auto& [y, product] : packed_.products) {
      if (product.weight != weight) continue;
      any = true;
      for (int n = 0; n < graph_.node_size(); ++n) {
        const onnx::NodeProto& node = graph_.node(n);
        if (node.output_size() > 0 && node.output(0) == y && behind_[n].empty())
          add_to(n, transposed, product.x);
      }
    }
    if (!any) fail("MatMulInteger reads it");
  }

  // `x`: what the product multiplies by the weight.
  void add_to(int n, bool transposed, const std::string& x) {
    onnx::NodeProto& node = *graph_.mutable_node(n);
    const bool is_conv = node.op_type() == "Conv";
    double factor = adapters_->are_inputs ? 1 : adapters_->scale;
    if (node.op_type() == "Gemm") {
      const onnx::AttributeProto *trans_a = find_attribute(node, "transA"),
                                 *trans_b = find_attribute(node, "transB"),
                                 *alpha = find_attribute(node, "alpha");
      if (trans_a != nullptr && trans_a->i() != 0) fail("a Gemm with transA reads it");
      if (trans_b != nullptr && trans_b->i() != 0) transposed = !transposed;
      if (alpha != nullptr) factor *= static_cast<double>(alpha->f());
    }
    if (!is_conv && transposed != adapters_->out_first) fail("it is read in two orientations");
    ++products_;
    place();
    std::vector<onnx::NodeProto>& added = behind_[n];
    const std::string y = node.output(0), own = unused(y + "/base");
    called_["x"] = x;
    node.set_output(0, own);
    std::string part;
    for (const AdapterStep& step : adapters_->steps) {
      part = unused(y + "/" + std::string(step.output));
      onnx::NodeProto& next = added.emplace_back();
      if (step.as_product) {
        next = node;
        next.clear_input();
        next.clear_output();
      }
      std::vector<std::string> inputs;
      for (const std::string_view input : step.inputs) inputs.push_back(called_.at(input));
      set(next, step.op, inputs, part);
      called_[step.output] = part;
    }
    if (!adapters_->are_inputs || factor != 1) {
      const std::string scaled = unused(y + "/lora");
      set(added.emplace_back(), "Mul", {part, scale_name(factor)}, scaled);
      part = scaled;
    }
    set(added.emplace_back(), "Add", {own, part}, y);
  }

  static void set(onnx::NodeProto& node, std::string_view op,
                  const std::vector<std::string>& inputs, const std::string& output) {
    node.set_op_type(std::string(op));
    node.set_name(output);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
  }

  /// Adds the operands, once.
  void place() {
    if (!called_.empty()) return;
    for (const AdapterOperand& operand : adapters_->operands) {
      const std::string name = adapters_->name_of(operand);
      called_[operand.part] = adapters_->are_inputs
                                  ? add_fed(name, operand.value.type(), operand.rank_axis)
                                  : add_initializer(name, operand.value);
    }
  }

  /// An input of any rank, with zeros as its default.
  std::string add_fed(const std::string& name, const TensorType& type, int rank_axis) {
    if (names_.contains(name))
      refuse(file_, name, "the model has a value of the name that an input for adapters gets", "",
             "", merge_instead);
    model_.set_ir_version(std::max<std::int64_t>(model_.ir_version(), oldest_ir_without_inputs));
    add_initializer(name, HostTensor(type));
    add_input(name, type)
        .mutable_shape()
        ->mutable_dim(rank_axis)
        ->set_dim_param(adapters_->weight + "/lora_rank");
    return name;
  }

  std::string scale_name(double factor) {
    const DType dtype = adapters_->operands[0].value.dtype();
    return add_initializer(
        adapters_->weight + "/lora_scale",
        HostTensor::from<float>({}, {static_cast<float>(factor)}).converted(dtype));
  }

  std::string add_initializer(const std::string& wanted, const HostTensor& value) {
    const std::string name = unused(wanted);
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(dtype_to_onnx(value.dtype()));
    for (const std::int64_t extent : value.shape()) tensor.add_dims(extent);
    write_tensor(tensor, value);
    if (model_.ir_version() < oldest_ir_without_inputs) add_input(name, value.type());
    return name;
  }

  onnx::TypeProto_Tensor& add_input(const std::string& name, const TensorType& of) {
    onnx::ValueInfoProto& input = *graph_.add_input();
    input.set_name(name);
    onnx::TypeProto_Tensor& type = *input.mutable_type()->mutable_tensor_type();
    type.set_elem_type(dtype_to_onnx(of.dtype));
    for (const std::int64_t extent : of.shape)
      type.mutable_shape()->add_dim()->set_dim_value(extent);
    type.mutable_shape();
    return type;
  }

  onnx::ModelProto& model_;
  onnx::GraphProto& graph_;
  const std::filesystem::path& file_;
  const PackedWeights packed_;
  std::set<std::string> names_;
  std::unordered_map<int, std::vector<onnx::NodeProto>> behind_;  // added, by the node before
  const WeightAdapters* adapters_ = nullptr;
  std::map<std::string_view, std::string> called_;  // what steps read, once operands are placed
  int products_ = 0;
};

}  // namespace

void add_adapter_nodes(onnx::ModelProto& model, const std::vector<WeightAdapters>& adapters,
                       const std::unordered_map<std::string, std::string>& shared,
                       const std::filesystem::path& file) {
  AdapterNodes nodes(model, file);
  for (const WeightAdapters& of_weight : adapters) {
    std::vector<std::string> others;
    for (const auto& [other, first] : shared) {
      if (first == of_weight.weight) others.push_back(other);
    }
    std::sort(others.begin(), others.end());  // the file is the same each time
    nodes.add(of_weight, others);
  }
  nodes.finish();
}

}  // namespace tandem::importer
