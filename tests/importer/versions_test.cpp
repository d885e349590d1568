// Every operator in every version that ONNX has of it, from operator set 7 on: imported, evaluated
// on reference kernels and compared with numbers from formulas.
#include "tests/importer/versions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "engine/graph/error.h"
#include "importer/operators/all.h"
#include "importer/tensor_data.h"
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

namespace {

constexpr int oldest_set = 7;

const std::vector<VersionRow>& rows() {
  static const std::vector<VersionRow> all = [] {
    std::vector<VersionRow> rows;
    add_elementwise_rows(rows);
    add_function_rows(rows);
    add_shape_rows(rows);
    add_constant_rows(rows);
    add_reduction_rows(rows);
    add_product_rows(rows);
    add_normalization_rows(rows);
    add_instance_normalization_rows(rows);
    add_indexing_rows(rows);
    add_resize_rows(rows);
    add_recurrent_rows(rows);
    return rows;
  }();
  return all;
}

// By operator: since_version of the version that operator set 7 means and of all later ones.
std::set<int> versions_of(const std::string& op) {
  static const std::map<std::string, std::set<int>> by_name = [] {
    std::map<std::string, std::set<int>> versions;
    for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
      if (!schema.domain().empty() || schema.deprecated()) continue;
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
    const auto& types = schema->inputs()[std::min(i, schema->inputs().size() - 1)].GetTypes();
    const bool takes = std::any_of(types.begin(), types.end(), [&](const std::string* name) {
      return *name == "tensor(" + type + ")";
    });
    if (!takes) return false;
  }
  return true;
}

void set_attribute(onnx::NodeProto& node, const std::string& name, const NodeAttribute& value) {
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

std::string difference(const HostTensor& got, const HostTensor& want) {
  if (!(got.type() == want.type()))
    return fmt::format("type {} instead of {}", to_string(got.type()), to_string(want.type()));
  const bool half = want.dtype() == DType::float16 || want.dtype() == DType::bfloat16;
  const double tolerance = half ? 1e-2 : want.dtype() == DType::float64 ? 1e-11 : 1e-5;
  for (std::int64_t i = 0; i < want.type().elements(); ++i) {
    const double a = got.number(i), b = want.number(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (std::abs(a - b) <= tolerance * (0.1 + std::abs(b))) continue;
    return fmt::format("element {}: {} instead of {}", i, a, b);
  }
  return "";
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
    for (const auto& [name, value] : row.attributes) set_attribute(node, name, value);
  }
  return import_graph(m.file(), engine_operators(), options);
}

std::string problem_of(const VersionRow& row, int version) {
  NamedTensors inputs;
  for (const HostTensor& x : row.inputs) inputs.emplace_back(fmt::format("x{}", inputs.size()), x);
  try {
    const NamedTensors got = run_graph(import_row(row, version, inputs).graph, inputs);
    if (!row.refused.empty()) return "is not refused";
    std::size_t next = 0;
    for (std::size_t i = 0; i < row.outputs.size(); ++i) {
      if (is_absent(row.outputs[i])) continue;
      const std::string why = difference(got.at(next).second, row.outputs[i]);
      if (!why.empty()) return fmt::format("output {}: {}", i, why);
      ++next;
    }
    return "";
  } catch (const std::exception& error) {
    const std::string text = error.what();
    if (!row.refused.empty() && text.find(row.refused) != std::string::npos) return "";
    return text;
  }
}

class OperatorVersions : public ::testing::TestWithParam<std::string> {};

TEST_P(OperatorVersions, MeanWhatTheirFormulasSay) {
  std::map<std::string, int> tried;  // by note
  for (const VersionRow& row : rows()) {
    if (row.op != GetParam()) continue;
    tried.try_emplace(row.note);
    for (int version : versions_of(row.op)) {
      if (!covers(row, version)) continue;
      ++tried[row.note];
      EXPECT_EQ(problem_of(row, version), "") << row.op << " " << version << ", " << row.note;
    }
  }
  for (const auto& [note, count] : tried) EXPECT_GT(count, 0) << "no version knows: " << note;
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const importer::Lowering& lowering : importer::all_lowerings()) names.push_back(lowering.op);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, OperatorVersions, ::testing::ValuesIn(operator_names()),
                         [](const auto& info) { return info.param; });

TEST(Versions, EachOfEachOperatorHasARow) {
  std::string missing;
  std::size_t pairs = 0;
  for (const std::string& op : operator_names()) {
    for (int version : versions_of(op)) {
      ++pairs;
      const bool found = std::any_of(rows().begin(), rows().end(), [&](const VersionRow& row) {
        return row.op == op && row.refused.empty() && covers(row, version);
      });
      if (!found) missing += fmt::format("{} {}\n", op, version);
    }
  }
  EXPECT_EQ(missing, "") << "these have no row in tests/importer/versions_*.cpp";
  EXPECT_GE(pairs, 295u);
}

TEST(Versions, RowsAreOfOperatorsThatAreImported) {
  const std::vector<std::string> names = operator_names();
  for (const VersionRow& row : rows()) {
    EXPECT_EQ(std::count(names.begin(), names.end(), row.op), 1) << row.op;
  }
}

// Operators that no row makes, with what does.
const std::map<std::string, std::string>& made_elsewhere() {
  static const std::map<std::string, std::string> operators{
      {"Dropout", "in training only, at random: DropoutInTraining"},
  };
  return operators;
}

// What a graph gets from a file: no operator is there without an importer that makes it.
TEST(Versions, EachOperatorOfTheEngineIsMade) {
  std::set<std::string> made;
  for (const VersionRow& row : rows()) {
    if (!row.refused.empty()) continue;
    NamedTensors inputs;
    for (const HostTensor& x : row.inputs)
      inputs.emplace_back(fmt::format("x{}", inputs.size()), x);
    for (int version : versions_of(row.op)) {
      if (!covers(row, version)) continue;
      for (const Node& node : import_row(row, version, inputs).graph.nodes) {
        made.insert(node.op->name);
      }
    }
  }
  for (const Operator& op : engine_operators().all()) {
    if (op.engine_only) continue;
    const auto exception = made_elsewhere().find(op.name);
    EXPECT_NE(made.count(op.name) > 0, exception != made_elsewhere().end())
        << op.name << ": a row makes it, or made_elsewhere() says what does";
  }
  for (const auto& [name, maker] : made_elsewhere()) {
    EXPECT_NE(engine_operators().find(name), nullptr) << name;
  }
}

// What is dropped is random: what stays is scaled by 1 / (1 - ratio), about that share stays, and
// the mask says which.
TEST(Versions, DropoutInTraining) {
  constexpr double ratio = 0.25;
  for (int version : versions_of("Dropout")) {
    SCOPED_TRACE(version);
    VersionRow row{.op = "Dropout", .training = true};
    row.inputs = {floats({20, 50}, Numbers(1000, 2.0))};
    row.outputs = {row.inputs[0], row.inputs[0]};
    if (version < 12) {
      row.attributes = {{"ratio", ratio}};
    } else {
      row.inputs.insert(row.inputs.end(), {floats({}, {ratio}), booleans({}, {1})});
    }
    NamedTensors inputs;
    for (const HostTensor& x : row.inputs)
      inputs.emplace_back(fmt::format("x{}", inputs.size()), x);
    const NamedTensors got = run_graph(import_row(row, version, inputs).graph, inputs);
    const HostTensor &y = got[0].second, &mask = got[1].second;
    EXPECT_EQ(mask.dtype(), version < 10 ? DType::float32 : DType::boolean);
    double kept = 0;
    for (std::int64_t i = 0; i < 1000; ++i) {
      kept += mask.number(i);
      EXPECT_NEAR(y.number(i), mask.number(i) * 2.0 / (1.0 - ratio), 1e-5);
    }
    EXPECT_NEAR(kept / 1000, 1.0 - ratio, 0.08);
  }
}

}  // namespace
}  // namespace tandem::testing
