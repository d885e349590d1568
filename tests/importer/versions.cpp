#include "tests/importer/versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "importer/file/tensor_data.h"
#include "importer/operators/all.h"
#include "onnx/defs/schema.h"

namespace tandem::testing {

HostTensor typed(DType dtype, const Shape& shape, const Numbers& values) {
  return HostTensor::from(shape, values).converted(dtype);
}
HostTensor floats(const Shape& shape, const Numbers& values) {
  return typed(DType::float32, shape, values);
}
HostTensor integers(const Shape& shape, const Numbers& values) {
  return typed(DType::int64, shape, values);
}
HostTensor integers(const Numbers& values) {
  return integers({static_cast<std::int64_t>(values.size())}, values);
}
HostTensor booleans(const Shape& shape, const Numbers& values) {
  return typed(DType::boolean, shape, values);
}
Numbers numbers_of(const HostTensor& x) {
  Numbers values;
  for (std::int64_t i = 0; i < x.type().elements(); ++i) values.push_back(x.number(i));
  return values;
}

#define TANDEM_ROWS(name) void add_##name##_rows(std::vector<VersionRow>& rows);
#include "tests/importer/versions.inl"

namespace {

constexpr int oldest_set = 7;

void set_row_attribute(onnx::NodeProto& node, const std::string& name, const NodeAttribute& value) {
  if (const auto* tensor = std::get_if<HostTensor>(&value)) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::TENSOR);
    attribute.mutable_t()->set_data_type(importer::dtype_to_onnx(tensor->dtype()));
    for (std::int64_t extent : tensor->shape()) attribute.mutable_t()->add_dims(extent);
    attribute.mutable_t()->set_raw_data(tensor->data(), tensor->bytes());
  } else if (const auto* list = std::get_if<std::vector<float>>(&value)) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::FLOATS);
    for (float number : *list) attribute.add_floats(number);
  } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    set(node, name, *integer);
  } else if (const auto* number = std::get_if<double>(&value)) {
    set(node, name, *number);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    set(node, name, *text);
  } else {
    set(node, name, std::get<Axes>(value));
  }
}

}  // namespace

const std::vector<VersionRow>& version_rows() {
  static const std::vector<VersionRow> all = [] {
    std::vector<VersionRow> rows;
#define TANDEM_ROWS(name) add_##name##_rows(rows);
#include "tests/importer/versions.inl"
    return rows;
  }();
  return all;
}

std::set<int> versions_of(const std::string& op) {
  static const std::map<std::string, std::set<int>> by_name = [] {
    std::map<std::string, std::set<int>> versions;
    for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
      const importer::Lowering* lowering = importer::find_lowering(schema.Name());
      const bool is_read = lowering != nullptr && lowering->though_deprecated;
      if (!schema.domain().empty() || (schema.deprecated() && !is_read)) continue;
      versions[schema.Name()].insert(schema.SinceVersion());
    }
    for (auto& [name, list] : versions) {
      const auto later = list.upper_bound(oldest_set);
      if (later != list.begin()) list.erase(list.begin(), std::prev(later));
    }
    return versions;
  }();
  return by_name.at(op);
}

bool is_absent(const HostTensor& tensor) { return tensor.data() == nullptr; }

bool covers(const VersionRow& row, int version) {
  if (version < row.first || version > row.last) return false;
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(row.op, version, "");
  if (row.nodes || !row.refused.empty()) return true;
  for (std::size_t i = 0; i < row.inputs.size(); ++i) {
    if (is_absent(row.inputs[i]) || schema->inputs().empty()) continue;
    std::string type(name_of(row.inputs[i].dtype()));
    if (type == "float32") type = "float";
    if (type == "float64") type = "double";
    std::erase(type, '_');  // float8e4m3fn
    if (type == "float8e8m0fnu") type = "float8e8m0";
    const auto& types = schema->inputs()[std::min(i, schema->inputs().size() - 1)].GetTypes();
    const bool takes = std::any_of(types.begin(), types.end(), [&](const std::string* name) {
      return *name == "tensor(" + type + ")";
    });
    if (!takes) return false;
  }
  return true;
}

NamedTensors inputs_of(const VersionRow& row) {
  NamedTensors inputs;
  for (const HostTensor& x : row.inputs) inputs.emplace_back(fmt::format("x{}", inputs.size()), x);
  return inputs;
}

ImportResult import_row(const VersionRow& row, int version, const NamedTensors& inputs) {
  ModelMaker m(std::max(version, oldest_set));
  ImportOptions options = with_evaluator();
  options.batch_norm = "file";
  options.training = row.training;
  std::vector<std::string> names, results;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& [name, tensor] = inputs[i];
    names.push_back(is_absent(tensor) ? "" : name);
    if (is_absent(tensor)) continue;
    m.input(name, tensor.shape(), importer::dtype_to_onnx(tensor.dtype()));
    if (row.known || importer::is_setting(row.op, i)) options.constants.push_back(inputs[i]);
  }
  for (std::size_t i = 0; i < row.outputs.size(); ++i) {
    results.push_back(is_absent(row.outputs[i]) ? "" : fmt::format("y{}", i));
    if (!results.back().empty()) m.output(results.back());
  }
  if (results.empty()) m.output(results.emplace_back("y0"));  // a row that is refused
  if (row.nodes) {
    row.nodes(m);
  } else {
    onnx::NodeProto& node = m.node(row.op, names, results);
    for (const auto& [name, value] : row.attributes) set_row_attribute(node, name, value);
  }
  return import_graph(m.file(), engine_operators(), options);
}

}  // namespace tandem::testing
