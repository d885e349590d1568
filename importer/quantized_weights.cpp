#include "importer/quantized_weights.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "engine/graph/text.h"
#include "importer/file/tensor_data.h"

namespace tandem::importer {
namespace {

/// An operator, and the inputs that hold quantised weights (-1: no second one).
struct Place {
  std::string_view op;
  int first = 0, second = -1;
};
constexpr std::array<Place, 18> places{{{"MatMulInteger", 0, 1},
                                        {"ConvInteger", 0, 1},
                                        {"QLinearMatMul", 0, 3},
                                        {"QLinearConv", 0, 3},
                                        {"DequantizeLinear", 0},
                                        {"Gather", 0},
                                        {"MatMulNBits", 1},
                                        {"MatMulBnb4", 1},
                                        {"MatMulFpQ4", 1},
                                        {"GatherBlockQuantized", 0},
                                        {"QGemm", 0, 3},
                                        {"MatMulIntegerToFloat", 0, 1},
                                        {"DynamicQuantizeMatMul", 1},
                                        {"QAttention", 1},
                                        {"DynamicQuantizeLSTM", 1, 2},
                                        {"QEmbedLayerNormalization", 2, 3},
                                        {"QMoE", 2, 5},
                                        {"QLinearConvTranspose", 0, 3}}};

/// int8, uint8, 4 and 2 bits, and the 32 bits that biases of quantised layers have.
bool is_few_bits(std::int32_t type, bool may_be_bias) {
  switch (type) {
    case onnx::TensorProto::INT8:
    case onnx::TensorProto::UINT8:
    case onnx::TensorProto::INT4:
    case onnx::TensorProto::UINT4:
      return true;
    case onnx::TensorProto::INT32:
      return may_be_bias;
    default:
      return false;
  }
}

std::int64_t elements_of(const onnx::TensorProto& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t extent : tensor.dims()) count *= std::max<std::int64_t>(extent, 0);
  return count;
}

/// How many numbers an operator packs into one byte.
std::int64_t packed(const onnx::NodeProto& node, std::int32_t type) {
  if (type != onnx::TensorProto::UINT8 && type != onnx::TensorProto::INT8) return 1;
  if (node.op_type() == "MatMulBnb4" || node.op_type() == "MatMulFpQ4") return 2;
  if (node.op_type() != "MatMulNBits" && node.op_type() != "GatherBlockQuantized") return 1;
  const onnx::AttributeProto* bits = find_attribute(node, "bits");
  const std::int64_t number = bits != nullptr ? bits->i() : 4;
  return number > 0 && number < 8 ? 8 / number : 1;
}

}  // namespace

QuantizedWeights quantized_weights(const OnnxFile::Content& file) {
  const onnx::GraphProto& graph = file.model->graph();
  std::map<std::string, const onnx::TensorProto*> tensors;
  for (const onnx::TensorProto& tensor : graph.initializer()) tensors[tensor.name()] = &tensor;
  std::map<std::string, std::string> moved;  // value: the tensor that it is another form of
  QuantizedWeights result;
  std::set<std::string> counted, types, operators;
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() == "Constant" && node.output_size() == 1) {
      const onnx::AttributeProto* value = find_attribute(node, "value");
      if (value != nullptr && value->has_t()) tensors[node.output(0)] = &value->t();
    }
    const auto original = [&](int i) {
      if (i < 0 || i >= node.input_size()) return std::string();
      const auto found = moved.find(node.input(i));
      return found == moved.end() ? node.input(i) : found->second;
    };
    if ((node.op_type() == "Transpose" || node.op_type() == "Reshape" ||
         node.op_type() == "Identity") &&
        node.output_size() == 1)
      moved[node.output(0)] = original(0);
    const auto place = std::find_if(places.begin(), places.end(),
                                    [&](const Place& p) { return p.op == node.op_type(); });
    if (place == places.end()) continue;
    for (const int input : {place->first, place->second}) {
      const auto found = tensors.find(original(input));
      if (found == tensors.end()) continue;
      const onnx::TensorProto& tensor = *found->second;
      if (!is_few_bits(tensor.data_type(), node.op_type() == "DequantizeLinear")) continue;
      operators.insert(node.op_type());
      if (!counted.insert(found->first).second) continue;
      result.numbers += elements_of(tensor) * packed(node, tensor.data_type());
      types.insert(onnx_type_name(tensor.data_type()));
    }
  }
  result.types = joined(std::vector<std::string>(types.begin(), types.end()), ", ");
  result.operators.assign(operators.begin(), operators.end());
  return result;
}

}  // namespace tandem::importer
