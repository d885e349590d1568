// Branches, loops and sequences: what they compute (onnxruntime's numbers, written by
// tests/scripts/control_flow_expectations.py), their gradients against differences in double,
// names, weights inside of them, and what is refused.
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
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
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

std::string refusal_of(const std::string& text, const FileLimits& limits = {}) {
  const OnnxFile file = OnnxFile::from_bytes(model_of(text), {}, limits);
  return error_of([&] { import_graph(file, engine_operators(), with_evaluator()); });
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

TEST(ControlFlowByData, IsNoted) {
  const ImportResult choice = import_text(R"(
m (float[2] x, bool c) => (float[2] y)
{
  ["choice"] y = If (c) <then_branch = a () => (float[2] p) { p = Relu (x) }, else_branch = b () => (float[2] q) { q = Neg (x) }>
})");
  EXPECT_THAT(choice.summary.notes,
              ElementsAre("choice: both branches are computed in each step, since data decides"));
  const ImportResult loop = import_text(R"(
m (float[2] x, bool c) => (float[2] y) <int64 trips = {2}>
{
  ["again"] y = Loop (trips, c, x) <body = a (int64 i, bool go, float[2] v) => (bool on, float[2] w) { on = Identity (c)
    w = Neg (v) }>
})");
  EXPECT_THAT(loop.summary.notes,
              ElementsAre("again: all iterations are computed in each step, since data ends it"));
}

TEST(ControlFlowByData, IsNotedOnceOfALoop) {
  const ImportResult loop = import_text(R"(
m (float[2] x, bool c) => (float[2] y) <int64 trips = {3}>
{
  ["again"] y = Loop (trips, , x) <body = a (int64 i, bool go, float[2] v) => (bool on, float[2] w) { on = Identity (go)
    ["choice"] w = If (c) <then_branch = b () => (float[2] p) { p = Relu (v) }, else_branch = d () => (float[2] q) { q = Neg (v) }> }>
})");
  EXPECT_THAT(loop.summary.notes,
              ElementsAre("again.0.choice and 2 more: both branches are computed in each step, "
                          "since data decides"));
}

TEST(ControlFlowRefusals, NameThePathAndWhatWouldHelp) {
  EXPECT_THAT(refusal_of(R"(
m (float[2] x, bool c) => (float[a] y)
{
  ["choice"] y = If (c) <then_branch = a () => (float[2] p) { p = Relu (x) }, else_branch = b () => (float[4] q) { q = Concat <axis = 0> (x, x) }>
})"),
              AllOf(HasSubstr("choice: If: output 'y' is float32[2] or float32[4] as a condition "
                              "says that is known in the run alone"),
                    HasSubstr("one type and shape in both cases")));
  const char* const by_data = R"(
m (float[2] x, int64 n, bool c) => (float[2] y{1}) <int64 trips = {{4}}>
{{
  ["again"] y{1} = Loop ({0}, x) <body = a (int64 i, bool go, float[2] v) => (bool on, float[2] w{2}) {{
    on = Identity ({3})
    w = Neg (v)
    {4}
  }}>
}})";
  const auto refused = [&](const char* head, const char* out, const char* row, const char* on,
                           const char* more) {
    return refusal_of(fmt::format(fmt::runtime(by_data), head, out, row, on, more));
  };
  EXPECT_THAT(refused("n, ", "", "", "go", ""),
              HasSubstr("again: Loop: the number of its iterations must be known before the run"));
  EXPECT_THAT(refused(", c", "", "", "c", ""),
              HasSubstr("again: Loop: its condition is computed from data, and nothing bounds its "
                        "iterations (a trip count"));
  EXPECT_THAT(refused("trips, c", ", rows", ", float[2] row", "c", "row = Identity (w)"),
              HasSubstr("again: Loop: 'rows' has as many rows as data says"));
}

TEST(ControlFlowRefusals, LoopsWithoutAnEnd) {
  FileLimits limits;
  limits.nodes = 1000;
  const char* const endless = R"(
m (float[2] x) => (float[2] y) <bool yes = {1}>
{
  ["again"] y = Loop (, yes, x) <body = a (int64 i, bool go, float[2] v) => (bool on, float[2] w) { on = Identity (go)
    w = Identity (v) }>
})";
  EXPECT_THAT(
      refusal_of(endless, limits),
      HasSubstr("again: Loop: its iterations, one after the other, are more than 100 nodes"));
}

// Iterations of three nodes each, which are below the limit by themselves.
TEST(ControlFlowRefusals, LoopsThatCopyMuch) {
  FileLimits limits;
  limits.nodes = 20000;
  EXPECT_THAT(refusal_of(R"(
m (float[2] x) => (int64 y) <int64 trips = {600}>
{
  empty = SequenceEmpty <dtype = 1> ()
  parts = Loop (trips, , empty) <body = a (int64 i, bool go, seq(float[2]) s) => (bool on, seq(float[2]) t) { on = Identity (go)
    t = SequenceInsert (s, x) }>
  y = SequenceLength (parts)
})",
                         limits),
              HasSubstr("more than 2000 nodes"));
  EXPECT_THAT(refusal_of(R"(
m (float[2] x) => (float[20000] y) <int64 trips = {600}, int64[1] size = {20000}>
{
  zeros = ConstantOfShape (size)
  y = Loop (trips, , zeros) <body = a (int64 i, bool go, float[20000] v) => (bool on, float[20000] w) { on = Identity (go)
    w = Neg (v) }>
})",
                         limits),
              HasSubstr("more than 2000 nodes"));
}

// What cannot be imported is reported once, at the path of the first iteration.
TEST(ControlFlowRefusals, OfABodyAreToldOnce) {
  const char* const strings = R"(
m (float[2] x) => (float[2] y) <int64 trips = {3}>
{
  ["again"] y = Loop (trips, , x) <body = a (int64 i, bool go, float[2] v) => (bool on, float[2] w) {
    on = Identity (go)
    all = Constant <value = int64[1] {3}> ()
    ["bad"] u = Reshape (v, all)
    w = Neg (u)
  }>
})";
  const std::string text = refusal_of(strings);
  EXPECT_THAT(text, HasSubstr("again.0.bad: "));
  EXPECT_THAT(text, Not(HasSubstr("again.1")));
}

// Statistics that are written only if data says so.
TEST(ControlFlowRefusals, StatesInBranchesThatDataChooses) {
  const std::string text = refusal_of(R"(
m (float[2,2] x, bool c) => (float[2,2] y) <float[2] s = {1,2}, float[2] b = {3,4}, float[2] mean = {0,1}, float[2] var = {5,6}>
{
  ["choice"] y = If (c) <then_branch = a () => (float[2,2] p) { p = BatchNormalization <training_mode = 1> (x, s, b, mean, var) }, else_branch = d () => (float[2,2] q) { q = Neg (x) }>
})");
  EXPECT_THAT(text, HasSubstr("choice: If: 'mean' is written inside of it"));
}

}  // namespace
}  // namespace tandem::testing
