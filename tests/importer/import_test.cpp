// What import produces from good files: paths, what trains, binding, normal form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/graph/error.h"
#include "tests/harness/folders.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace tandem::testing;

ImportResult import_fixture(const std::string& name, ImportOptions options = {}) {
  return import_graph(OnnxFile::open(fixtures() / name), engine_operators(),
                      with_evaluator(std::move(options)));
}

const Node* find_node(const Graph& graph, const std::string& op, int skip = 0) {
  for (const Node& node : graph.nodes) {
    if (node.op->name == op && skip-- == 0) return &node;
  }
  return nullptr;
}

// Paths of the operators that hold the work; exporters differ in how they move data between them.
std::multiset<std::string> work_paths(const Graph& graph) {
  static const std::set<std::string> work{"MatMul",
                                          "Conv",
                                          "BatchNormalizationTraining",
                                          "LayerNormalization",
                                          "Softmax",
                                          "MaxPool",
                                          "AveragePool",
                                          "Gather",
                                          "Gelu",
                                          "Relu",
                                          "LeakyRelu",
                                          "SoftmaxCrossEntropy",
                                          "ReduceMean"};
  std::multiset<std::string> paths;
  for (const Node& node : graph.nodes) {
    if (work.count(node.op->name) > 0) paths.insert(node.path);
  }
  return paths;
}

class ParityFiles : public ::testing::TestWithParam<const char*> {};

TEST_P(ParityFiles, BothExportersGiveTheSamePaths) {
  const std::string name = GetParam();
  const ImportResult a = import_fixture(name + "_torchscript.onnx");
  const ImportResult b = import_fixture(name + "_dynamo.onnx");
  EXPECT_EQ(work_paths(a.graph), work_paths(b.graph));
  std::set<std::string> parameters[2];
  for (const int k : {0, 1}) {
    for (const State& state : (k == 0 ? a : b).graph.states) {
      // The exporters call a tied weight by the first or by the last of its names.
      const bool tied = name == "tied_decoder" && state.path == "head:weight";
      if (state.trainable) parameters[k].insert(tied ? "token:weight" : state.path);
    }
  }
  EXPECT_EQ(parameters[0], parameters[1]);
  EXPECT_FALSE(parameters[0].empty());
}

TEST_P(ParityFiles, ComputeTheSame) {
  const std::string name = GetParam();
  ImportOptions options;
  options.training = false;
  options.batch = 3;
  const ImportResult a = import_fixture(name + "_torchscript.onnx", options);
  const ImportResult b = import_fixture(name + "_dynamo.onnx", options);
  NamedTensors feeds;
  for (const NamedValue& input : a.graph.inputs) {
    const TensorType& type = a.graph.type(input.value);
    HostTensor numbers(TensorType{DType::float64, type.shape});
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      numbers.as<double>()[static_cast<std::size_t>(i)] =
          is_float(type.dtype) ? static_cast<double>(i % 17) / 8 - 1 : static_cast<double>(i % 5);
    }
    feeds.emplace_back(input.name, numbers.converted(type.dtype));
  }
  const NamedTensors x = run_graph(a.graph, feeds), y = run_graph(b.graph, feeds);
  ASSERT_EQ(x.size(), 1u);
  ASSERT_EQ(y.size(), 1u);
  ASSERT_EQ(x[0].second.type(), y[0].second.type());
  // The TorchScript exporter ran the model once: its running statistics have moved.
  const bool same_statistics = find_node(a.graph, "BatchNormalization") == nullptr;
  for (std::int64_t i = 0; same_statistics && i < x[0].second.type().elements(); ++i) {
    ASSERT_NEAR(x[0].second.number(i), y[0].second.number(i),
                1e-4 * (1 + std::abs(y[0].second.number(i))));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ParityFiles,
                         ::testing::Values("mlp", "mlp_loss", "lenet5", "resnet18", "gpt",
                                           "gpt_loss", "conv_bn", "encoder", "tied_decoder"));

// A module that is called twice, as siamese networks do: each call moves the running statistics on,
// whether the file names them or a copy of them.
TEST(Import, BatchNormalizationOfTwoCallsMovesItsStatisticsTwice) {
  for (const std::string second : {"mean", "copy"}) {
    const std::string text = R"(<ir_version: 10, opset_import: ["": 20]>
m (float[2, 1, 2] a, float[2, 1, 2] b) => (float[2, 1, 2] c, float[2, 1, 2] d)
<float[1] scale = {1}, float[1] bias = {0}, float[1] mean = {10}, float[1] var = {20}>
{
  c = BatchNormalization <training_mode = 1, momentum = 0.5> (a, scale, bias, mean, var)
  copy = Identity (mean)
  d = BatchNormalization <training_mode = 1, momentum = 0.5> (b, scale, bias, )" +
                             second + ", var)\n}";
    Graph graph =
        import_graph(OnnxFile::from_bytes(model_bytes(text)), engine_operators(), with_evaluator())
            .graph;
    graph.outputs.push_back({"new mean", graph.find_state("mean")->final});
    const NamedTensors results =
        run_graph(graph, {{"a", HostTensor::from<float>({2, 1, 2}, {1, 2, 3, 2})},
                          {"b", HostTensor::from<float>({2, 1, 2}, {-1, 5, 5, -1})}});
    EXPECT_FLOAT_EQ(results[2].second.as<float>()[0], (10 / 2.0f + 2 / 2.0f) / 2 + 2 / 2.0f);
  }
}

TEST(Import, BatchNormalizationTrainsUnlessToldOtherwise) {
  for (const char* exporter : {"conv_bn_dynamo.onnx", "conv_bn_torchscript.onnx"}) {
    const ImportResult training = import_fixture(exporter);
    const Node* node = find_node(training.graph, "BatchNormalizationTraining");
    ASSERT_NE(node, nullptr) << exporter;
    EXPECT_NEAR(node->attributes.number("momentum"), 0.9, 1e-6);
    const State* mean = training.graph.find_state("1.running_mean");
    ASSERT_NE(mean, nullptr);
    EXPECT_EQ(mean->kind, StateKind::buffer);
    EXPECT_FALSE(mean->trainable);
    EXPECT_EQ(mean->final, node->outputs[1]);
    EXPECT_EQ(training.graph.find_state("1.running_var")->final, node->outputs[2]);

    ImportOptions options;
    options.batch_norm = "inference";
    EXPECT_EQ(find_node(import_fixture(exporter, options).graph, "BatchNormalizationTraining"),
              nullptr);
    options.batch_norm = "file";
    EXPECT_NE(find_node(import_fixture(exporter, options).graph, "BatchNormalizationTraining"),
              nullptr);
    options.batch_norm = "train";
    options.training = false;
    const ImportResult evaluation = import_fixture(exporter, options);
    EXPECT_EQ(find_node(evaluation.graph, "BatchNormalizationTraining"), nullptr);
    EXPECT_EQ(evaluation.graph.states.size(), training.graph.states.size());
  }
}

TEST(Import, ZeroBiasesOfTheExporterAreConstants) {
  const ImportResult result = import_fixture("conv_bn_dynamo.onnx");
  const Node* conv = find_node(result.graph, "Conv");
  ASSERT_NE(conv, nullptr);
  EXPECT_TRUE(result.graph.is_constant(conv->inputs[2]));
  EXPECT_EQ(find_node(result.graph, "Expand"), nullptr);
}

TEST(Import, TiedWeightsAreOneState) {
  const ImportResult result = import_fixture("tied_decoder_torchscript.onnx");
  const State* token = result.graph.find_state("token.weight");
  ASSERT_NE(token, nullptr);
  EXPECT_EQ(readers_of(result.graph)[static_cast<std::size_t>(token->initial.index)].size(), 2u);
}

TEST(Import, FreeBatchIsBound) {
  ImportOptions options;
  options.batch = 7;
  const ImportResult result = import_fixture("gpt_loss_dynamo.onnx", options);
  EXPECT_EQ(result.graph.type(result.graph.find_input("tokens")->value).shape, (Shape{7, 16}));
  EXPECT_EQ(result.graph.type(result.graph.find_input("labels")->value).shape, (Shape{7, 16}));
  EXPECT_EQ(result.file_batch, 0);
  options.batch = 0;
  options.bind = {{"batch", 5}};
  const ImportResult named = import_fixture("gpt_loss_dynamo.onnx", options);
  EXPECT_EQ(named.graph.type(named.graph.find_input("tokens")->value).shape, (Shape{5, 16}));
}

// An attention-like reshape chain whose constants hold a batch of 2.
ModelMaker fixed_batch() {
  ModelMaker m;
  m.input("x", {2, 6, 8}).output("y").weight("w", {8, 5});
  m.integers("heads", {2, 6, 4, 2}).integers("merged", {8, 6, 2}).integers("flat", {2, -1});
  m.integers("rows", {12, 8}).integers("wide", {2, 6, 8});
  m.node("Reshape", {"x", "heads"}, {"a"});
  set(m.node("Transpose", {"a"}, {"b"}), "perm", std::vector<std::int64_t>{0, 2, 1, 3});
  m.node("Reshape", {"b", "merged"}, {"c"});
  m.node("Reshape", {"c", "wide"}, {"d"});
  m.node("Reshape", {"d", "rows"}, {"e"});
  m.node("MatMul", {"e", "w"}, {"f"});
  m.node("Reshape", {"f", "flat"}, {"y"});
  return m;
}

TEST(Import, FixedBatchIsBoundAnew) {
  ImportOptions options = with_evaluator();
  const ImportResult same = import_graph(fixed_batch().file(), engine_operators(), options);
  EXPECT_EQ(same.file_batch, 2);
  EXPECT_TRUE(same.rewrites.empty());
  options.batch = 5;
  const ImportResult other = import_graph(fixed_batch().file(), engine_operators(), options);
  const auto shape = [&](const char* name) {
    return other.graph.type(other.graph.find_value(name)).shape;
  };
  EXPECT_EQ(shape("a"), (Shape{5, 6, 4, 2}));
  EXPECT_EQ(shape("c"), (Shape{20, 6, 2}));
  EXPECT_EQ(shape("d"), (Shape{5, 6, 8}));
  EXPECT_EQ(shape("e"), (Shape{30, 8}));
  EXPECT_EQ(shape("y"), (Shape{5, 30}));
  EXPECT_EQ(other.rewrites.size(), 5u);
}

TEST(Import, BatchOfOneIsNotSwallowedByMinusOne) {
  ModelMaker m;
  m.input("x", {1, 3, 4}).output("y").integers("shape", {1, -1});
  m.node("Reshape", {"x", "shape"}, {"y"});
  ImportOptions options = with_evaluator();
  options.batch = 6;
  const ImportResult result = import_graph(m.file(), engine_operators(), options);
  EXPECT_EQ(result.graph.type(result.graph.outputs[0].value).shape, (Shape{6, 12}));
}

TEST(Import, FixedBatchInAConstantThatCannotFollow) {
  ModelMaker m;
  m.input("x", {2, 6}).output("y").integers("shape", {3, 4});
  m.node("Reshape", {"x", "shape"}, {"y"}).set_name("mixes");
  ImportOptions options = with_evaluator();
  options.batch = 5;
  EXPECT_THAT(error_of([&] { import_graph(m.file(), engine_operators(), options); }),
              ::testing::AllOf(HasSubstr("mixes"), HasSubstr("batch")));
}

TEST(Import, WhatTrains) {
  ModelMaker m;
  m.input("x", {2, 4}).output("y").output("i");
  m.weight("fc.weight", {4, 4})
      .weight("low", {})
      .weight("onnx::Mul_7", {4})
      .weight("onnx::MatMul_8", {4, 4});
  m.weight("table", {4}).weight("unused", {4}).weight("high", {});
  m.node("MatMul", {"x", "fc.weight"}, {"a"});
  m.node("Clip", {"a", "low", "high"}, {"b"});
  m.node("Mul", {"b", "onnx::Mul_7"}, {"c"});
  m.node("MatMul", {"c", "onnx::MatMul_8"}, {"y"});
  m.node("Greater", {"x", "table"}, {"i"});
  const ImportResult result = import_graph(m.file(), engine_operators(), with_evaluator());
  std::map<std::string, const ParameterSummary*> by_name;
  for (const ParameterSummary& p : result.summary.parameters) by_name[p.name] = &p;
  EXPECT_TRUE(by_name["fc.weight"]->trainable);
  EXPECT_EQ(by_name["fc.weight"]->path, "fc:weight");
  EXPECT_TRUE(by_name["onnx::MatMul_8"]->trainable);
  EXPECT_FALSE(by_name["onnx::Mul_7"]->trainable);
  EXPECT_FALSE(by_name["low"]->trainable);
  EXPECT_THAT(by_name["low"]->reason, HasSubstr("setting"));
  EXPECT_FALSE(by_name["unused"]->trainable);
  EXPECT_THAT(by_name["unused"]->reason, HasSubstr("reaches no output"));
  EXPECT_FALSE(by_name["table"]->trainable);
  EXPECT_FALSE(by_name["table"]->reason.empty());
}

TEST(Import, MetadataKindsDecide) {
  ModelMaker m;
  m.input("x", {2, 4}).output("y");
  const auto kind = [&](const std::string& name, const char* value) {
    m.weight(name, {4});
    onnx::ValueInfoProto& info = *m.graph().add_value_info();
    info.set_name(name);
    auto& entry = *info.add_metadata_props();
    entry.set_key("pkg.torch.export.graph_signature.InputSpec.kind");
    entry.set_value(value);
  };
  kind("p", "PARAMETER");
  kind("b", "BUFFER");
  kind("c", "CONSTANT_TENSOR");
  m.node("Mul", {"x", "p"}, {"s"});
  m.node("Add", {"s", "b"}, {"t"});
  m.node("Add", {"t", "c"}, {"y"});
  const ImportResult result = import_graph(m.file(), engine_operators(), with_evaluator());
  ASSERT_EQ(result.graph.states.size(), 2u);
  EXPECT_TRUE(result.graph.find_state("p")->trainable);
  EXPECT_EQ(result.graph.find_state("b")->kind, StateKind::buffer);
}

TEST(Import, PathsWithoutScopes) {
  ModelMaker m;
  m.input("x", {2, 4}).output("y");
  m.node("Relu", {"x"}, {"a"});
  m.node("Relu", {"a"}, {"b"});
  m.node("Neg", {"b"}, {"c"}).set_name("model/head/neg");
  m.node("Neg", {"c"}, {"y"}).set_name("model/head/neg");
  const ImportResult result = import_graph(m.file(), engine_operators(), with_evaluator());
  std::vector<std::string> paths;
  for (const Node& node : result.graph.nodes) paths.push_back(node.path);
  EXPECT_THAT(paths, ElementsAre("Relu#0", "Relu#1", "model.head.neg", "model.head.neg#1"));
}

TEST(Import, FunctionsAreInlined) {
  ModelMaker m;
  onnx::OperatorSetIdProto& own = *m.model.add_opset_import();
  own.set_domain("own");
  own.set_version(1);
  onnx::FunctionProto& f = *m.model.add_functions();
  f.set_name("leak");
  f.set_domain("own");
  f.add_input("a");
  f.add_output("b");
  f.add_attribute("slope");
  f.add_opset_import()->set_version(20);
  onnx::NodeProto& body = *f.add_node();
  body.set_op_type("LeakyRelu");
  body.set_name("inner");
  body.add_input("a");
  body.add_output("b");
  onnx::AttributeProto& alpha = *body.add_attribute();
  alpha.set_name("alpha");
  alpha.set_type(onnx::AttributeProto::FLOAT);
  alpha.set_ref_attr_name("slope");
  m.input("x", {2}).output("y");
  onnx::NodeProto& call = m.node("leak", {"x"}, {"y"});
  call.set_domain("own");
  call.set_name("act");
  set(call, "slope", 0.25);
  const ImportResult result = import_graph(m.file(), engine_operators(), with_evaluator());
  ASSERT_EQ(result.graph.nodes.size(), 1u);
  EXPECT_EQ(result.graph.nodes[0].path, "act.inner");
  EXPECT_EQ(result.graph.nodes[0].attributes.number("alpha"), 0.25);
  EXPECT_EQ(result.graph.value(result.graph.outputs[0].value).name, "y");
}

// From the first operator set in which ONNX's own definition consists of operators that import
// reads.
TEST(Import, DefinitionsOfOnnxAreInlined) {
  const std::vector<float> numbers{-7, -2.5, -0.25, 0, 0.25, 1, 2.5, 7};
  double square = 0;
  for (const float x : numbers) square += x * x / 8.0;
  ModelMaker m(23);
  m.input("x", {8}).input("scale", {8}).output("y");
  m.node("RMSNormalization", {"x", "scale"}, {"y"}).set_name("norm");
  const Graph graph = import_graph(m.file(), engine_operators(), with_evaluator()).graph;
  EXPECT_GT(graph.nodes.size(), 1u);
  for (const Node& part : graph.nodes) EXPECT_EQ(part.path, "norm");
  const std::vector<float> scale{1, 2, 3, 4, 5, 6, 7, 8};
  const NamedTensors y = run_graph(graph, {{"x", HostTensor::from<float>({8}, numbers)},
                                           {"scale", HostTensor::from<float>({8}, scale)}});
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_NEAR(y.at(0).second.number(static_cast<std::int64_t>(i)),
                numbers[i] * scale[i] / std::sqrt(square + 1e-5), 1e-5);
  }
}

// Functions composed of others: nodes with the operator's path, its name on the result.
TEST(Import, ComposedFunctionsKeepPathAndName) {
  for (int opset : {18, 22}) {
    ModelMaker m(opset);
    m.input("x", {8}).output("y");
    m.node("Mish", {"x"}, {"y"}).set_name("act");
    const Graph graph = import_graph(m.file(), engine_operators(), with_evaluator()).graph;
    ASSERT_EQ(graph.nodes.size(), 3u);
    for (const Node& part : graph.nodes) EXPECT_EQ(part.path, "act");
    EXPECT_EQ(graph.value(graph.outputs[0].value).name, "y");
  }
}

TEST(Import, DropoutFollowsTheRun) {
  for (int opset : {7, 10, 12, 13, 20}) {
    ModelMaker m(opset);
    m.input("x", {2, 4}).output("y");
    if (opset < 12) {
      set(m.node("Dropout", {"x"}, {"y"}), "ratio", 0.25);
    } else {
      m.weight("ratio", {}, 0.25f);
      onnx::TensorProto& mode = *m.graph().add_initializer();
      mode.set_name("mode");
      mode.set_data_type(onnx::TensorProto::BOOL);
      mode.add_int32_data(1);
      m.node("Dropout", {"x", "ratio", "mode"}, {"y"});
    }
    ImportOptions options = with_evaluator();
    const ImportResult training = import_graph(m.file(), engine_operators(), options);
    EXPECT_EQ(training.graph.nodes[0].op->name, "Dropout") << opset;
    EXPECT_NEAR(training.graph.nodes[0].attributes.number("ratio"), 0.25, 1e-6);
    options.training = false;
    EXPECT_EQ(import_graph(m.file(), engine_operators(), options).graph.nodes[0].op->name,
              "Identity")
        << opset;
  }
}

// The whole corpus of other projects' files: imported, or refused with an Error.
TEST(Import, CorpusNeverCrashes) {
  const char* shared = std::getenv("TANDEM_SHARED");
  const std::filesystem::path root = shared != nullptr
                                         ? std::filesystem::path(shared)
                                         : std::filesystem::path(source_folder()) / "../shared";
  if (!std::filesystem::is_directory(root / "corpus"))
    GTEST_SKIP() << "no corpus (TANDEM_SHARED names its folder)";
  int imported = 0, problems = 0, refused = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "corpus")) {
    if (entry.path().extension() != ".onnx") continue;
    ImportOptions options = with_evaluator();
    options.collect_problems = true;
    try {
      const ImportResult result =
          import_graph(OnnxFile::open(entry.path()), engine_operators(), options);
      ++(result.summary.problems.empty() ? imported : problems);
    } catch (const Error&) {
      ++refused;
    }
  }
  std::printf("corpus: %d imported, %d with problems listed, %d refused\n", imported, problems,
              refused);
  EXPECT_GT(imported, 500);
}

}  // namespace
}  // namespace tandem
