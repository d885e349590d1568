#include "tests/importer/json_nodes.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/importer/support.h"

namespace tandem::testing {

using Json = nlohmann::json;

HostTensor tensor_of(const Json& entry) {
  const auto shape = entry.at("shape").get<Shape>();
  const std::string type = entry.at("type");
  const Json& values = entry.at("values");
  if (type == "bool") {
    std::vector<double> numbers;
    for (const Json& value : values) numbers.push_back(value.get<bool>());
    return HostTensor::from(shape, numbers).converted(DType::boolean);
  }
  if (type == "int64") return HostTensor::from(shape, values.get<std::vector<std::int64_t>>());
  if (type == "int32") return HostTensor::from(shape, values.get<std::vector<std::int32_t>>());
  if (type == "int8") return HostTensor::from(shape, values.get<std::vector<std::int8_t>>());
  if (type == "uint8") return HostTensor::from(shape, values.get<std::vector<std::uint8_t>>());
  if (type == "float32") return HostTensor::from(shape, values.get<std::vector<float>>());
  if (type == "float64") return HostTensor::from(shape, values.get<std::vector<double>>());
  throw std::runtime_error("expected values of type " + type);
}

void set_attribute(onnx::NodeProto& node, const std::string& name, const Json& value) {
  if (value.is_string()) {
    set(node, name, value.get<std::string>());
  } else if (value.is_array() && value[0].is_string()) {
    onnx::AttributeProto& texts = *node.add_attribute();
    texts.set_name(name);
    texts.set_type(onnx::AttributeProto::STRINGS);
    for (const Json& text : value) texts.add_strings(text.get<std::string>());
  } else if (value.is_array() && value[0].is_number_float()) {
    onnx::AttributeProto& floats = *node.add_attribute();
    floats.set_name(name);
    floats.set_type(onnx::AttributeProto::FLOATS);
    for (const Json& number : value) floats.add_floats(number.get<float>());
  } else if (value.is_array()) {
    set(node, name, value.get<std::vector<std::int64_t>>());
  } else if (value.is_number_float()) {
    set(node, name, value.get<double>());
  } else {
    set(node, name, value.get<std::int64_t>());
  }
}

}  // namespace tandem::testing
