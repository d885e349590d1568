#include "importer/file/structure_text.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/formats/sha256.h"
#include "engine/graph/text.h"
#include "importer/file/tensor_data.h"

namespace tandem::importer {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t most_shown_elements = 8;
constexpr std::size_t most_shown_text = 256;

std::string hash_text(const void* data, std::size_t bytes) {
  return "sha256 " + sha256(data, bytes).substr(0, 32);
}

std::string message_text(const google::protobuf::MessageLite& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return hash_text(bytes.data(), bytes.size());
}

}  // namespace

std::string name_text(const std::string& text) {
  return Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string shortened(std::string text) {
  return text.size() <= most_shown_text ? text : hash_text(text.data(), text.size());
}

std::string string_text(const std::string& text) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  return plain ? name_text(text) : hash_text(text.data(), text.size());
}

std::string values_text(const HostTensor& tensor) {
  if (tensor.type().elements() > most_shown_elements)
    return hash_text(tensor.data(), tensor.bytes());
  const DType dtype = tensor.dtype();
  const bool narrow = dtype == DType::float16 || dtype == DType::bfloat16 || is_float8(dtype);
  const HostTensor shown = narrow ? tensor.converted(DType::float32) : tensor;
  std::string text;
  with_type(shown.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_arithmetic_v<T>) {
      text = joined(shown.as<T>(), ", ", [](T value) { return fmt::format("{}", value); });
    }
  });
  return "[" + text + "]";
}

std::string unsupported_text(const onnx::TensorProto& tensor) {
  onnx::TensorProto nameless = tensor;
  nameless.clear_name();
  nameless.clear_doc_string();
  return onnx_type_name(tensor.data_type()) + " " + message_text(nameless);
}

std::string tensor_text(const onnx::TensorProto& tensor, const OnnxFile::Content& file) {
  if (!dtype_from_onnx(tensor.data_type())) return unsupported_text(tensor);
  const HostTensor values = read_tensor(tensor, file, tensor.name());
  return to_string(values.type()) + " " + values_text(values);
}

std::string type_text(const onnx::TypeProto& type) {
  if (!type.has_tensor_type()) return message_text(type);
  const onnx::TypeProto_Tensor& tensor = type.tensor_type();
  const auto dtype = dtype_from_onnx(tensor.elem_type());
  std::string text(dtype ? std::string(name_of(*dtype)) : onnx_type_name(tensor.elem_type()));
  if (!tensor.has_shape()) return text;
  std::string dims;
  for (int i = 0; i < tensor.shape().dim_size(); ++i) {
    const auto& dim = tensor.shape().dim(i);
    const std::string extent = dim.has_dim_value() ? std::to_string(dim.dim_value()) : "free";
    dims += i == 0 ? "batch" : ", " + extent;
  }
  return text + " [" + dims + "]";
}

std::string attribute_text(const onnx::AttributeProto& a, const OnnxFile::Content& file) {
  using Proto = onnx::AttributeProto;
  const auto integer = [](std::int64_t value) { return std::to_string(value); };
  const auto number = [](float value) { return fmt::format("{}", value); };
  const auto tensor = [&](const onnx::TensorProto& value) { return tensor_text(value, file); };
  if (!a.ref_attr_name().empty())
    return "attribute " + name_text(a.ref_attr_name()) + " of the call";
  Proto::AttributeType type = a.type();
  if (type == Proto::UNDEFINED) {  // files of the first versions of the format
    type = a.has_i()              ? Proto::INT
           : a.has_f()            ? Proto::FLOAT
           : a.has_s()            ? Proto::STRING
           : a.has_t()            ? Proto::TENSOR
           : a.has_g()            ? Proto::GRAPH
           : a.ints_size() > 0    ? Proto::INTS
           : a.floats_size() > 0  ? Proto::FLOATS
           : a.strings_size() > 0 ? Proto::STRINGS
           : a.tensors_size() > 0 ? Proto::TENSORS
           : a.graphs_size() > 0  ? Proto::GRAPHS
                                  : Proto::UNDEFINED;
  }
  switch (type) {
    case Proto::INT:
      return integer(a.i());
    case Proto::FLOAT:
      return number(a.f());
    case Proto::STRING:
      return shortened(string_text(a.s()));
    case Proto::TENSOR:
      return tensor(a.t());
    case Proto::INTS:
      return list_text(a.ints(), integer);
    case Proto::FLOATS:
      return list_text(a.floats(), number);
    case Proto::STRINGS:
      return list_text(a.strings(), string_text);
    case Proto::TENSORS:
      return list_text(a.tensors(), tensor);
    case Proto::GRAPH:
      return "graph";
    case Proto::GRAPHS:
      return std::to_string(a.graphs_size()) + " graphs";
    default: {
      Proto plain = a;
      plain.clear_name();
      plain.clear_doc_string();
      return message_text(plain);
    }
  }
}

}  // namespace tandem::importer
