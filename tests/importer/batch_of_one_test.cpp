// Files that both of PyTorch's exporters wrote with a batch of one, imported with a batch of four:
// what they compute is PyTorch's, or they are refused. tests/scripts/batch_of_one.py has the
// models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/graph/error.h"
#include "importer/export_graph.h"
#include "tests/harness/folders.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using namespace testing;

std::filesystem::path one_folder() {
  return std::filesystem::path(source_folder()) / "tests/data/batch_of_one";
}

nlohmann::json one_cases() {
  std::ifstream file(one_folder() / "cases.json");
  return nlohmann::json::parse(file);
}

HostTensor one_tensor(const nlohmann::json& given) {
  const Shape shape = given["shape"].get<Shape>();
  if (given.value("type", "float32") == "int64")
    return HostTensor::from(shape, given["values"].get<std::vector<std::int64_t>>());
  return HostTensor::from(shape, given["values"].get<std::vector<float>>());
}

ImportResult import_for_four(const OnnxFile& file) {
  ImportOptions options = with_evaluator();
  options.batch = 4;
  options.training = false;
  return import_graph(file, engine_operators(), options);
}

TEST(BatchOfOne, ComputesWhatPyTorchDoes) {
  int count = 0;
  for (const nlohmann::json& each : one_cases()) {
    if (each["outputs"].is_null()) continue;
    const std::string name = each["file"];
    SCOPED_TRACE(name);
    ++count;
    ImportResult result;
    try {
      result = import_for_four(OnnxFile::open(one_folder() / name));
    } catch (const Error& error) {
      if (!each["may_refuse"]) ADD_FAILURE() << error.what();
      continue;
    }
    NamedTensors inputs;
    for (const nlohmann::json& input : each["inputs"]) {
      if (result.graph.find_input(input["name"].get<std::string>()) != nullptr)
        inputs.emplace_back(input["name"], one_tensor(input));
    }
    const HostTensor got = run_graph(result.graph, inputs).at(0).second;
    const HostTensor want = one_tensor(each["outputs"]);
    ASSERT_EQ(got.shape(), want.shape());
    for (std::int64_t i = 0; i < want.type().elements(); ++i)
      ASSERT_NEAR(got.number(i), want.number(i), 2e-5 * std::max(1.0, std::abs(want.number(i))))
          << i;
  }
  EXPECT_GT(count, 30);
}

TEST(BatchOfOne, RefusesWhatItDoesNotShow) {
  for (const nlohmann::json& each : one_cases()) {
    if (!each["outputs"].is_null()) continue;
    const std::string name = each["file"];
    SCOPED_TRACE(name);
    const std::string error =
        error_of([&] { import_for_four(OnnxFile::open(one_folder() / name)); });
    EXPECT_THAT(error, HasSubstr("batch of 1"));
    EXPECT_THAT(error, HasSubstr("free"));  // the remedy
  }
}

// The file's own batch is not another one.
TEST(BatchOfOne, TakesItsOwnBatch) {
  for (const nlohmann::json& each : one_cases()) {
    SCOPED_TRACE(each["file"]);
    ImportOptions options = with_evaluator();
    options.batch = 1;
    EXPECT_NO_THROW(import_graph(OnnxFile::open(one_folder() / std::string(each["file"])),
                                 engine_operators(), options));
  }
}

// Sample numbers that the file computes from a shape already follow the batch.
TEST(BatchOfOne, NumbersFromShapesAreLeftAlone) {
  ModelMaker m;
  m.input("x", {1, 5, 3}).output("y").integers("zero", {0}).integers("all", {-1, 3});
  m.input("at", {1}, onnx::TensorProto::INT64);
  m.node("Shape", {"x"}, {"shape"});
  m.node("Gather", {"shape", "zero"}, {"batch1"});
  m.node("Squeeze", {"batch1"}, {"batch"});
  const auto scalar = [&](const std::string& name, std::int64_t value) {
    onnx::NodeProto& node = m.node("Constant", {}, {name});
    set(node, "value_int", value);
  };
  scalar("first", 0);
  scalar("one", 1);
  scalar("five", 5);
  m.node("Range", {"first", "batch", "one"}, {"numbers"});
  m.node("Mul", {"numbers", "five"}, {"starts"});
  m.node("Add", {"starts", "at"}, {"rows"});
  m.node("Reshape", {"x", "all"}, {"flat"});
  m.node("Gather", {"flat", "rows"}, {"y"});
  const ImportResult result = import_for_four(m.file());
  std::vector<float> values(60);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const HostTensor got =
      run_graph(result.graph, {{"x", HostTensor::from<float>({4, 5, 3}, values)},
                               {"at", HostTensor::from<std::int64_t>({4}, {2, 0, 4, 1})}})
          .at(0)
          .second;
  const float wanted[] = {6, 15, 42, 48};  // (5 b + at) 3
  for (std::int64_t b = 0; b < 4; ++b) EXPECT_EQ(got.number(b * 3), wanted[b]);
}

}  // namespace
}  // namespace tandem
