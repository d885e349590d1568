// Branches, loops and sequences: what they compute (onnxruntime's numbers, written by
// tests/scripts/control_flow_expectations.py), their gradients against differences in double,
// names, weights inside of them. What is noted or refused: tests/expected/import/control_flow.txt.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "importer/export_graph.h"
#include "onnx/defs/parser.h"
#include "tests/harness/folders.h"
#include "tests/importer/differences.h"
#include "tests/importer/support.h"

namespace tandem::testing {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

/// A model in ONNX's text form.
std::string model_of(const std::string& text, int opset = 20) {
  onnx::ModelProto model;
  const std::string whole =
      fmt::format("<ir_version: 10, opset_import: [\"\": {}]>\n{}", opset, text);
  const onnx::Common::Status status = onnx::OnnxParser::Parse(model, whole.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return model.SerializeAsString();
}

ImportResult import_text(const std::string& text, ImportOptions options = {}, int opset = 20) {
  return import_graph(OnnxFile::from_bytes(model_of(text, opset)), engine_operators(),
                      with_evaluator(std::move(options)));
}

class ControlFlow : public ::testing::TestWithParam<Json> {};

TEST_P(ControlFlow, ComputesWhatOnnxruntimeDoes) {
  const Json& json = GetParam();
  const Graph graph = import_text(json.at("model"), {}, json.at("opset")).graph;
  for (const Json& run : json.at("runs")) {
    const NamedTensors got = run_graph(graph, tensors_of(run.at("inputs")));
    expect_near(got, tensors_of(run.at("outputs")), 1e-12);
  }
}

TEST_P(ControlFlow, HasTheGradientsOfItsDifferences) {
  const Json& json = GetParam();
  const Graph graph = import_text(json.at("model"), {}, json.at("opset")).graph;
  for (const Json& run : json.at("runs")) {
    SCOPED_TRACE(run.at("inputs").dump());
    expect_gradients(graph, tensors_of(run.at("inputs")));
  }
}

std::vector<Json> control_flow_cases() {
  const std::string path = source_folder() + "/tests/data/control_flow.json";
  return Json::parse(read_file(path)).get<std::vector<Json>>();
}

INSTANTIATE_TEST_SUITE_P(All, ControlFlow, ::testing::ValuesIn(control_flow_cases()),
                         [](const auto& info) {
                           return info.param.at("name").template get<std::string>();
                         });

std::vector<std::string> paths_of(const Graph& graph) {
  std::vector<std::string> paths;
  for (const Node& node : graph.nodes) paths.push_back(node.path);
  return paths;
}

// x is carried through a layer `cell` that is called three times.
std::string cell_loop(const std::string& loop_name) {
  return fmt::format(R"(
m (float[2,3] x, int64 unused) => (float[2,3] y) <int64 trips = {{3}}, float[3,3] "cell.weight" = {{1,2,3,4,5,6,7,8,9}}>
{{
  ["{}"] y = Loop (trips, , x) <body = step (int64 i, bool go, float[2,3] h) => (bool on, float[2,3] next) {{
    on = Identity (go)
    ["/net/cell/MatMul"] product = MatMul (h, "cell.weight")
    ["/net/cell/Tanh"] next = Tanh (product)
  }}>
}})",
                     loop_name);
}

TEST(ControlFlowNames, AreThoseOfTheLoopOfTheIterationAndOfTheOperator) {
  const ImportResult result = import_text(cell_loop("/net/Loop"));
  EXPECT_THAT(
      paths_of(result.graph),
      ElementsAre("net.Loop.0.cell.MatMul", "net.Loop.0.cell.Tanh", "net.Loop.1.cell.MatMul",
                  "net.Loop.1.cell.Tanh", "net.Loop.2.cell.MatMul", "net.Loop.2.cell.Tanh"));
  EXPECT_EQ(result.raw_names.at("net.Loop.2.cell.Tanh"), "/net/cell/Tanh");
  EXPECT_EQ(paths_of(import_text(cell_loop("repeat")).graph).back(), "repeat.2.net.cell.Tanh");
  EXPECT_THAT(result.summary.notes, IsEmpty());
}

// One parameter, however often the loop reads it.
TEST(ControlFlowWeights, OfAllIterationsAreOneParameter) {
  const Graph graph = import_text(cell_loop("/net/Loop")).graph;
  ASSERT_EQ(graph.states.size(), 1u);
  EXPECT_EQ(graph.states[0].path, "cell:weight");
  EXPECT_TRUE(graph.states[0].trainable);
}

// A body's own weight w, and one that a Transpose reads, whose name an exporter made up.
const char* const weights_in_a_body = R"(
m (float[2,2] x) => (float[2,2] y) <int64 trips = {2}, float[2,2] onnx__MatMul_12 = {1,2,3,4}>
{
  y = Loop (trips, , x) <body = step (int64 i, bool go, float[2,2] h) => (bool on, float[2,2] next)
  <float[2,2] w = {1,0,0,1}>
  {
    on = Identity (go)
    product = MatMul (h, w)
    turned = Transpose <perm = [1, 0]> (onnx__MatMul_12)
    next = MatMul (product, turned)
  }>
})";

std::string with_made_up_name(std::string bytes) {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(bytes));
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.mutable_initializer(1)->set_name("onnx::MatMul_12");
  graph.mutable_node(0)->mutable_attribute(0)->mutable_g()->mutable_node(2)->set_input(
      0, "onnx::MatMul_12");
  return model.SerializeAsString();
}

TEST(ControlFlowWeights, InsideOfABodyAreParametersAndAreExported) {
  const OnnxFile file = OnnxFile::from_bytes(with_made_up_name(model_of(weights_in_a_body)));
  const ImportResult result = import_graph(file, engine_operators(), with_evaluator());
  std::vector<std::string> names;
  for (const State& state : result.graph.states) names.push_back(state.name);
  EXPECT_THAT(names, UnorderedElementsAre("w", "onnx::MatMul_12"));

  ScratchFolder folder;
  const std::filesystem::path to = folder.path() / "trained.onnx";
  ExportOptions options;
  options.import = with_evaluator();
  options.free_batch = false;
  const HostTensor w = HostTensor::from<float>({2, 2}, {2, 0, 0, 2});
  export_graph(file, engine_operators(), {{"w", w}}, to, options);
  const Graph again = import_graph(OnnxFile::open(to), engine_operators(), with_evaluator()).graph;
  const HostTensor ones = HostTensor::from<float>({2, 2}, {1, 1, 1, 1});
  const HostTensor before = run_graph(result.graph, {{"x", ones}})[0].second;
  const HostTensor after = run_graph(again, {{"x", ones}})[0].second;
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(after.number(i), 4 * before.number(i));
}

// What is the same in each iteration is computed only once.
TEST(ControlFlowWeights, AreTransposedOnce) {
  const OnnxFile file = OnnxFile::from_bytes(model_of(weights_in_a_body));
  const Graph graph = import_graph(file, engine_operators(), with_evaluator()).graph;
  const auto is_transpose = [](const Node& node) { return node.op->name == "Transpose"; };
  EXPECT_EQ(std::count_if(graph.nodes.begin(), graph.nodes.end(), is_transpose), 1);
}

// The names that optimum's merge_decoders gives; y is taken.
TEST(ControlFlowWeights, OfMergedHalvesHaveTheNamesOfTheHalves) {
  const OnnxFile file = OnnxFile::from_bytes(model_of(R"(
m (float[2] x, bool use_cache_branch) => (float[2] y)
  <float[2] scale_merged_0 = {2, 3}, float[2] y_merged_0 = {4, 5}> {
  y = If (use_cache_branch) <
    then_branch = with_past () => (float a) { b = Mul (x, scale_merged_0) a = Add (b, y_merged_0) },
    else_branch = no_past () => (float c) { d = Mul (x, scale_merged_0) c = Sub (d, y_merged_0) }>
})"));
  ImportOptions options;
  options.bind = {{"use_cache_branch", 0}};
  const ImportResult result = import_graph(file, engine_operators(), with_evaluator(options));
  ASSERT_EQ(result.graph.states.size(), 2u);
  EXPECT_EQ(result.graph.states[0].name, "scale");
  EXPECT_EQ(result.graph.states[1].name, "y_merged_0");
  const NamedTensors got = run_graph(result.graph, {{"x", HostTensor::from<float>({2}, {1, 1})}});
  expect_near(got, {{"y", HostTensor::from<float>({2}, {-2, -2})}}, 0);
}

// As onnxruntime's float16 converter appends the Casts of inputs, behind the nodes that read them.
TEST(NodeOrder, NodesBehindTheirReadersMove) {
  ImportOptions options;
  options.bind = {{"yes", 1}};
  const ImportResult result =
      import_text(R"(agraph (float[2] x, bool yes) => (float[2] y, float[2] z) {
    y = Sub (b, a)
    z = If (yes) <then_branch = yes_graph () => (float t1) { t1 = Abs (t0) t0 = Neg (b) },
                  else_branch = no_graph () => (float e1) { e1 = Identity (b) }>
    b = Neg (a)
    a = Relu (x)
  })",
                  options);
  const Graph& graph = result.graph;
  const NamedTensors got = run_graph(graph, {{"x", HostTensor::from<float>({2}, {3, -5})}});
  const HostTensor y = HostTensor::from<float>({2}, {-6, 0}),
                   z = HostTensor::from<float>({2}, {3, 0});
  expect_near(got, {{"y", y}, {"z", z}}, 0);
}

}  // namespace
}  // namespace tandem::testing
