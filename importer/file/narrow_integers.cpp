#include "importer/file/narrow_integers.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <unordered_set>

#include "importer/file/tensor_data.h"

namespace tandem::importer {
namespace {

using NarrowTensor = onnx::TensorProto;

/// How a type packs its elements: the first one in the lowest bits of a byte.
struct Packing {
  int bits = 0;
  bool has_sign = false;
};

std::optional<Packing> packing_of(std::int32_t type) {
  switch (type) {
    case NarrowTensor::INT4:
      return Packing{4, true};
    case NarrowTensor::UINT4:
      return Packing{4, false};
    case NarrowTensor::INT2:
      return Packing{2, true};
    case NarrowTensor::UINT2:
      return Packing{2, false};
    default:
      return std::nullopt;
  }
}

using NameSet = std::unordered_set<std::string>;

bool dequantizes(const onnx::NodeProto& node) {
  return node.op_type() == "DequantizeLinear" && domain_of(node.domain()).empty();
}

/// What anything but a DequantizeLinear reads, or a graph returns, is fed or is not named once.
void add_other_uses(const onnx::GraphProto& graph, NameSet& names) {
  for (const onnx::ValueInfoProto& input : graph.input()) names.insert(input.name());
  for (const onnx::ValueInfoProto& output : graph.output()) names.insert(output.name());
  for (const onnx::NodeProto& node : graph.node()) {
    if (!dequantizes(node)) names.insert(node.input().begin(), node.input().end());
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) add_other_uses(attribute.g(), names);
      for (const onnx::GraphProto& each : attribute.graphs()) add_other_uses(each, names);
    }
  }
}

class Widening {
 public:
  Widening(const OnnxFile::Content& content, const NameSet& other_uses)
      : content_(content), other_uses_(other_uses) {}

  void graph(onnx::GraphProto& graph) {
    for (NarrowTensor& tensor : *graph.mutable_initializer()) {
      if (other_uses_.count(tensor.name()) == 0) widen(tensor, tensor.name());
    }
    for (onnx::NodeProto& node : *graph.mutable_node()) {
      for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) this->graph(*attribute.mutable_g());
        for (onnx::GraphProto& each : *attribute.mutable_graphs()) this->graph(each);
        const bool is_constant = node.op_type() == "Constant" && attribute.has_t() &&
                                 attribute.name() == "value" && node.output_size() == 1;
        if (is_constant && other_uses_.count(node.output(0)) == 0)
          widen(*attribute.mutable_t(), node.output(0));
      }
    }
  }

 private:
  void widen(NarrowTensor& tensor, const std::string& where) const {
    const std::optional<Packing> packing = packing_of(tensor.data_type());
    if (!packing) return;
    NarrowTensor wide;
    wide.set_name(tensor.name());
    wide.set_doc_string(tensor.doc_string());
    *wide.mutable_dims() = tensor.dims();
    wide.set_data_type(packing->has_sign ? NarrowTensor::INT8 : NarrowTensor::UINT8);
    const std::int64_t count = checked_type(wide, content_, where).elements();
    const std::int64_t in_byte = 8 / packing->bits;

    NarrowTensor packed = tensor;
    packed.set_data_type(NarrowTensor::UINT8);
    packed.clear_dims();
    packed.add_dims((count + in_byte - 1) / in_byte);
    for (int& field : *packed.mutable_int32_data()) field &= 0xff;
    const HostTensor from = read_tensor(packed, content_, where);
    std::string bytes(static_cast<std::size_t>(count), '\0');
    for (std::int64_t i = 0; i < count; ++i)
      bytes[static_cast<std::size_t>(i)] = element(from, i, *packing);
    wide.set_raw_data(std::move(bytes));
    tensor = std::move(wide);
  }

  static char element(const HostTensor& from, std::int64_t i, const Packing& packing) {
    const std::int64_t in_byte = 8 / packing.bits;
    const int byte = from.as<std::uint8_t>()[static_cast<std::size_t>(i / in_byte)];
    const int range = 1 << packing.bits;
    int value = (byte >> (i % in_byte * packing.bits)) & (range - 1);
    if (packing.has_sign && value >= range / 2) value -= range;  // two's complement
    return static_cast<char>(value);
  }

  const OnnxFile::Content& content_;
  const NameSet& other_uses_;
};

}  // namespace

void widen_narrow_integers(onnx::ModelProto& model, const OnnxFile::Content& content,
                           const PackedWeights& packed) {
  NameSet other_uses;
  for (const auto& [name, type] : packed.data) other_uses.insert(name);
  add_other_uses(model.graph(), other_uses);
  Widening(content, other_uses).graph(*model.mutable_graph());
}

bool is_nibbles(const onnx::TensorProto& tensor) {
  return tensor.data_type() == NarrowTensor::INT4 || tensor.data_type() == NarrowTensor::UINT4;
}

HostTensor read_nibbles(const onnx::TensorProto& tensor, const OnnxFile::Content& content,
                        const std::string& where) {
  NarrowTensor bytes = tensor;
  bytes.set_data_type(NarrowTensor::UINT8);
  const int last = bytes.dims_size() - 1;
  bytes.set_dims(last, bytes.dims(last) / 2);
  for (int& field : *bytes.mutable_int32_data()) field &= 0xff;
  const HostTensor read = read_tensor(bytes, content, where);
  return tensor.has_raw_data() ? read.clone() : read;  // raw data ends with `bytes`
}

}  // namespace tandem::importer
