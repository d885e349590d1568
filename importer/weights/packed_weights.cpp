#include "importer/weights/packed_weights.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "importer/file/onnx_content.h"

namespace tandem::importer {
namespace {

using Proto = onnx::TensorProto;

bool is_onnx(const onnx::NodeProto& node, const char* op) {
  return node.op_type() == op && domain_of(node.domain()).empty();
}

bool is_microsoft(const onnx::NodeProto& node, const char* op) {
  return node.op_type() == op && node.domain() == "com.microsoft";
}

class Finder {
 public:
  explicit Finder(const onnx::GraphProto& graph) {
    for (const Proto& tensor : graph.initializer()) tensors_[tensor.name()] = &tensor;
    for (const onnx::NodeProto& node : graph.node()) {
      for (const std::string& name : node.output()) producers_[name] = &node;
      for (int i = 0; i < node.input_size(); ++i) readers_[node.input(i)].push_back({&node, i});
      // What a graph inside of a node reads is read in a way that is not looked at.
      for (const onnx::AttributeProto& attribute : node.attribute()) {
        add_captures(attribute.g());
        for (const onnx::GraphProto& inner : attribute.graphs()) add_captures(inner);
      }
    }
    for (const onnx::ValueInfoProto& output : graph.output()) others_.insert(output.name());
    for (const onnx::NodeProto& node : graph.node()) add(node);
  }

  PackedWeights result;

 private:
  struct Reader {
    const onnx::NodeProto* node;
    int input;
  };

  void add_captures(const onnx::GraphProto& graph) {
    for (const onnx::NodeProto& node : graph.node()) {
      others_.insert(node.input().begin(), node.input().end());
      for (const onnx::AttributeProto& attribute : node.attribute()) {
        add_captures(attribute.g());
        for (const onnx::GraphProto& inner : attribute.graphs()) add_captures(inner);
      }
    }
    for (const onnx::ValueInfoProto& output : graph.output()) others_.insert(output.name());
  }

  const Proto* tensor(const onnx::NodeProto& node, int i) const {
    if (i >= node.input_size() || others_.contains(node.input(i))) return nullptr;
    const auto found = tensors_.find(node.input(i));
    return found == tensors_.end() ? nullptr : found->second;
  }

  void add(const onnx::NodeProto& node) {
    if (is_microsoft(node, "MatMulNBits") && (node.input_size() < 5 || node.input(4).empty()))
      keep(node, 1, 2);
    else if (is_microsoft(node, "MatMulBnb4"))
      keep(node, 1, 2);
    else if (is_microsoft(node, "GatherBlockQuantized"))
      keep(node, 0, 2);
    else if (is_onnx(node, "DequantizeLinear") && makes_weight(node))
      keep(node, 0, 1);
    else if (is_onnx(node, "MatMulInteger"))
      add_dynamic(node);
  }

  void keep(const onnx::NodeProto& node, int data, int scales) {
    const Proto *bytes = tensor(node, data), *numbers = tensor(node, scales);
    if (bytes == nullptr || numbers == nullptr) return;
    result.data[bytes->name()] = bytes->data_type();
    result.scales.insert(numbers->name());
  }

  static bool has_bytes(const Proto& tensor) {
    switch (tensor.data_type()) {
      case Proto::INT8:
      case Proto::UINT8:
        return true;
      case Proto::INT4:
      case Proto::UINT4:  // rows of an odd length would not begin with a byte
        return tensor.dims(tensor.dims_size() - 1) % 2 == 0;
      default:
        return false;
    }
  }

  // Whether only products as their right operand, and lookups, read the matrix that it makes.
  bool makes_weight(const onnx::NodeProto& node) const {
    const Proto *bytes = tensor(node, 0), *scales = tensor(node, 1);
    if (bytes == nullptr || scales == nullptr || bytes->dims_size() != 2) return false;
    const bool has_floats = scales->data_type() == Proto::FLOAT ||
                            scales->data_type() == Proto::FLOAT16 ||
                            scales->data_type() == Proto::BFLOAT16;
    if (!has_bytes(*bytes) || !has_floats || node.output_size() != 1) return false;
    if (const onnx::AttributeProto* type = find_attribute(node, "output_dtype");
        type != nullptr && type->i() != 0 && type->i() != scales->data_type())
      return false;
    return all_readers(bytes->name(), 1) && is_read_as_weight(node.output(0));
  }

  bool all_readers(const std::string& name, std::size_t count) const {
    const auto found = readers_.find(name);
    return found != readers_.end() && found->second.size() == count;
  }

  bool is_read_as_weight(const std::string& name) const {
    const auto found = readers_.find(name);
    if (found == readers_.end() || others_.contains(name)) return false;
    return std::all_of(found->second.begin(), found->second.end(), [&](const Reader& reader) {
      const onnx::NodeProto& node = *reader.node;
      if (is_onnx(node, "MatMul") || is_onnx(node, "Gemm"))
        return reader.input == 1 && node.input(0) != name;
      if (is_onnx(node, "Gather")) return reader.input == 0;
      return is_onnx(node, "Transpose") && is_read_as_weight(node.output(0));
    });
  }

  const onnx::NodeProto* producer(const std::string& name, const char* op) const {
    const auto found = producers_.find(name);
    return found != producers_.end() && is_onnx(*found->second, op) ? found->second : nullptr;
  }

  // The one node that reads the value; null where there are more, or it is an output.
  const onnx::NodeProto* only_reader(const std::string& name, const char* op) const {
    if (!all_readers(name, 1) || others_.contains(name)) return nullptr;
    const onnx::NodeProto* reader = readers_.at(name)[0].node;
    return is_onnx(*reader, op) ? reader : nullptr;
  }

  void add_dynamic(const onnx::NodeProto& product) {
    const onnx::NodeProto* quantize =
        product.input_size() < 3 ? nullptr : producer(product.input(0), "DynamicQuantizeLinear");
    const Proto* bytes = tensor(product, 1);
    if (quantize == nullptr || bytes == nullptr || bytes->dims_size() != 2) return;
    if (!has_bytes(*bytes) || product.input(2) != quantize->output(2)) return;
    const onnx::NodeProto* cast = only_reader(product.output(0), "Cast");
    const onnx::NodeProto* last = cast ? only_reader(cast->output(0), "Mul") : nullptr;
    if (last == nullptr) return;
    const std::string& factor = last->input(0) == cast->output(0) ? last->input(1) : last->input(0);
    const onnx::NodeProto* scales = producer(factor, "Mul");
    if (scales == nullptr) return;
    const bool is_first = scales->input(0) == quantize->output(1);
    if (!is_first && scales->input(1) != quantize->output(1)) return;
    const Proto* scale = tensor(*scales, is_first ? 1 : 0);
    if (scale == nullptr || scale->data_type() != Proto::FLOAT || scale->dims_size() > 1) return;
    DynamicProduct found{quantize->input(0), bytes->name(), scale->name(), ""};
    if (product.input_size() > 3 && !product.input(3).empty()) {
      const Proto* zero = tensor(product, 3);
      if (zero == nullptr || zero->dims_size() > 1) return;
      found.zero_point = zero->name();
    }
    result.products[last->output(0)] = found;
    result.data[found.weight] = bytes->data_type();
    result.scales.insert(found.scale);
  }

  std::unordered_map<std::string, const Proto*> tensors_;
  std::unordered_map<std::string, const onnx::NodeProto*> producers_;
  std::unordered_map<std::string, std::vector<Reader>> readers_;
  std::unordered_set<std::string> others_;  // outputs, and what graphs inside of nodes read
};

}  // namespace

std::string without_quantizers_ending(const std::string& name) {
  for (const std::string_view ending :
       {"_Q2", "_Q4", "_Q8", "_Bnb4", "_quantized", "_quant", "_qweight"}) {
    if (name.size() > ending.size() && name.ends_with(ending))
      return name.substr(0, name.size() - ending.size());
  }
  return name;
}

PackedWeights find_packed_weights(const onnx::ModelProto& model) {
  return Finder(model.graph()).result;
}

}  // namespace tandem::importer
