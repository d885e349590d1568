// Changes to an exported graph (other outputs, folded BatchNormalization, float16, another opset):
// each computes what the plain export computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "engine/graph/error.h"
#include "importer/export_graph.h"
#include "onnx/checker.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace tandem::testing;

onnx::ModelProto parsed(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromIstream(&stream));
  return model;
}

std::map<std::string, int> operator_counts(const onnx::ModelProto& model) {
  std::map<std::string, int> counts;
  for (const auto& node : model.graph().node()) ++counts[node.op_type()];
  return counts;
}

std::map<std::string, int> initializer_types(const onnx::ModelProto& model) {
  std::map<std::string, int> types;
  for (const auto& tensor : model.graph().initializer()) types[tensor.name()] = tensor.data_type();
  return types;
}

/// Different numbers for every element, whatever the shape.
NamedTensors spread_feeds(const Graph& graph) {
  NamedTensors feeds;
  for (const NamedValue& input : graph.inputs) {
    const TensorType& type = graph.type(input.value);
    HostTensor numbers(TensorType{DType::float64, type.shape});
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      numbers.as<double>()[static_cast<std::size_t>(i)] =
          is_float(type.dtype) ? std::sin(0.7 * static_cast<double>(i) + 0.3)
                               : static_cast<double>(i % 5);
    }
    feeds.emplace_back(input.name, numbers.converted(type.dtype));
  }
  return feeds;
}

Graph inference_graph(const std::filesystem::path& path, std::optional<std::int64_t> batch = 3) {
  ImportOptions options = with_evaluator();
  options.batch_norm = "file";
  options.training = false;
  if (batch) options.batch = *batch;
  return import_graph(OnnxFile::open(path), engine_operators(), options).graph;
}

double largest(const HostTensor& tensor) {
  double most = 0;
  for (std::int64_t i = 0; i < tensor.type().elements(); ++i)
    most = std::max(most, std::abs(tensor.number(i)));
  return most;
}

/// Compares outputs by name; differences are relative to the largest value of an output.
void expect_near_results(const std::filesystem::path& plain, const std::filesystem::path& changed,
                         double part) {
  const Graph a = inference_graph(plain), b = inference_graph(changed);
  const NamedTensors feeds = spread_feeds(a);
  std::map<std::string, HostTensor> expected;
  for (auto& [name, tensor] : run_graph(a, feeds)) expected[name] = tensor;
  const NamedTensors got = run_graph(b, feeds);
  ASSERT_FALSE(got.empty());
  for (const auto& [name, tensor] : got) {
    SCOPED_TRACE(name);
    ASSERT_EQ(tensor.type(), expected.at(name).type());
    const double bound = part * largest(expected.at(name));
    EXPECT_GT(bound, 0);
    for (std::int64_t i = 0; i < tensor.type().elements(); ++i)
      ASSERT_NEAR(tensor.number(i), expected.at(name).number(i), bound) << i;
  }
}

bool passes_full_check(const std::filesystem::path& model) {
  try {
    onnx::checker::check_model(model.string(), true);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

class ExportForms : public ::testing::Test {
 protected:
  /// Writes the model twice, plainly and in a form.
  ExportResult export_both(const OnnxFile& file, const ExportOptions& form) {
    ExportOptions plain;
    plain.import = with_evaluator();
    export_graph(file, engine_operators(), {}, plain_, plain);
    ExportOptions changed = form;
    changed.import = with_evaluator();
    ExportResult result = export_graph(file, engine_operators(), {}, changed_, changed);
    // Models made by hand have outputs without a shape, which the full check does not accept.
    EXPECT_NO_THROW(onnx::checker::check_model(changed_.string(), passes_full_check(plain_)));
    return result;
  }
  std::string refusal(const OnnxFile& file, const ExportOptions& form) {
    return error_of([&] { export_graph(file, engine_operators(), {}, changed_, form); });
  }

  ScratchFolder folder_;
  const std::filesystem::path plain_ = folder_.path() / "plain.onnx";
  const std::filesystem::path changed_ = folder_.path() / "changed.onnx";
};

// ---------------------------------------------------------------- folded BatchNormalization

ModelMaker& add_norm(ModelMaker& m, const std::string& of, std::int64_t channels,
                     const std::string& to) {
  m.weight(to + ".gamma", {channels}, 0.8f).weight(to + ".beta", {channels}, -0.4f);
  m.weight(to + ".mean", {channels}, 0.3f).weight(to + ".variance", {channels}, 0.6f);
  set(m.node("BatchNormalization",
             {of, to + ".gamma", to + ".beta", to + ".mean", to + ".variance"}, {to}),
      "epsilon", 1e-3);
  return m;
}

TEST_F(ExportForms, BatchNormGoesIntoNetworks) {
  const std::map<std::string, int> norms{{"conv_bn_torchscript.onnx", 3},
                                         {"conv_bn_dynamo.onnx", 3},  // with computed biases
                                         {"resnet18_torchscript.onnx", 20}};
  for (const auto& [name, count] : norms) {
    SCOPED_TRACE(name);
    const ExportResult written =
        export_both(OnnxFile::open(fixtures() / name), {.fold_batch_norm = true});
    EXPECT_EQ(written.note, "folded " + std::to_string(count) + " of " + std::to_string(count) +
                                " BatchNormalization into the weights before");
    EXPECT_EQ(operator_counts(parsed(plain_))["BatchNormalization"], count);
    const onnx::ModelProto changed = parsed(changed_);
    EXPECT_EQ(operator_counts(changed).count("BatchNormalization"), 0u);
    for (const auto& [initializer, type] : initializer_types(changed))
      EXPECT_THAT(initializer, Not(HasSubstr("running_")));
    expect_near_results(plain_, changed_, 1e-6);
  }
}

TEST_F(ExportForms, BatchNormGoesIntoEveryKindOfProduct) {
  for (const int groups : {1, 2}) {
    ModelMaker m;
    m.input("x", {2, 4, 5}).output("y").weight("w", {4, 6 / groups, 3}).weight("b", {6}, 0.2f);
    set(m.node("ConvTranspose", {"x", "w", "b"}, {"z"}), "group", std::int64_t{groups});
    add_norm(m, "z", 6, "y");
    const ExportResult written = export_both(m.file(), {.fold_batch_norm = true});
    EXPECT_THAT(written.note, HasSubstr("folded 1 of 1")) << groups;
    expect_near_results(plain_, changed_, 1e-6);
  }
  for (const std::int64_t transposed : {0, 1}) {
    for (const std::vector<std::int64_t>& bias :
         {std::vector<std::int64_t>{5}, {1, 5}, {1}, {2, 5}}) {
      ModelMaker m;
      m.input("x", {2, 4}).output("y").weight("b", bias, 0.7f);
      m.weight("w",
               transposed == 1 ? std::vector<std::int64_t>{5, 4} : std::vector<std::int64_t>{4, 5});
      onnx::NodeProto& gemm = m.node("Gemm", {"x", "w", "b"}, {"z"});
      set(gemm, "transB", transposed);
      set(gemm, "alpha", 1.5);
      set(gemm, "beta", -0.5);
      add_norm(m, "z", 5, "y");
      ExportOptions form{.free_batch = false, .fold_batch_norm = true};
      const ExportResult written = export_both(m.file(), form);
      EXPECT_THAT(written.note, HasSubstr("folded 1 of 1"));
      const Graph plain = inference_graph(plain_, std::nullopt);
      const Graph changed = inference_graph(changed_, std::nullopt);
      const NamedTensors feeds = spread_feeds(plain);
      const HostTensor a = run_graph(plain, feeds)[0].second,
                       b = run_graph(changed, feeds)[0].second;
      for (std::int64_t i = 0; i < a.type().elements(); ++i)
        ASSERT_NEAR(b.number(i), a.number(i), 1e-6 * largest(a)) << i;
    }
  }
}

TEST_F(ExportForms, WhatOthersReadStays) {
  ModelMaker m;
  m.input("x", {2, 3, 6}).output("y").output("read").weight("w", {4, 3, 2});
  m.node("Conv", {"x", "w"}, {"a"});
  m.node("Conv", {"x", "w"}, {"b"});  // the same weight, which keeps its values for the other one
  m.node("Conv", {"x", "w"}, {"read"});
  add_norm(m, "a", 4, "na");
  add_norm(m, "read", 4, "nr");  // its input is an output of the model
  m.node("Sum", {"na", "nr", "b"}, {"y"});
  EXPECT_THAT(export_both(m.file(), {.fold_batch_norm = true}).note, HasSubstr("folded 1 of 2"));
  const onnx::ModelProto changed = parsed(changed_);
  EXPECT_EQ(operator_counts(changed)["BatchNormalization"], 1);
  EXPECT_EQ(initializer_types(changed).count("na.gamma"), 0u);
  EXPECT_EQ(initializer_types(changed).count("nr.gamma"), 1u);
  expect_near_results(plain_, changed_, 1e-6);
}

// ---------------------------------------------------------------- other outputs

ModelMaker two_heads() {
  ModelMaker m;
  m.input("x", {2, 4}).input("other", {2, 3}).output("y").output("z");
  m.weight("w", {4, 5}).weight("head", {5, 2}).weight("side", {3, 2});
  m.node("MatMul", {"x", "w"}, {"hidden"});
  m.node("Relu", {"hidden"}, {"features"});
  m.node("MatMul", {"features", "head"}, {"y"});
  m.node("MatMul", {"other", "side"}, {"z"});
  return m;
}

TEST_F(ExportForms, OnlyNamedOutputsAndWhatTheyNeed) {
  export_both(two_heads().file(), {.keep = {"features"}});
  const onnx::ModelProto changed = parsed(changed_);
  ASSERT_EQ(changed.graph().output_size(), 1);
  EXPECT_EQ(changed.graph().output(0).name(), "features");
  EXPECT_EQ(changed.graph().output(0).type().tensor_type().shape().dim(1).dim_value(), 5);
  EXPECT_EQ(initializer_types(changed), (std::map<std::string, int>{{"w", 1}}));
  ASSERT_EQ(changed.graph().input_size(), 1);
  EXPECT_EQ(changed.graph().input(0).name(), "x");
  EXPECT_EQ(operator_counts(changed), (std::map<std::string, int>{{"MatMul", 1}, {"Relu", 1}}));
  // Its numbers are those of the whole graph.
  export_both(two_heads().file(), {.keep = {"z", "y"}});
  EXPECT_EQ(parsed(changed_).graph().output(0).name(), "z");
  expect_near_results(plain_, changed_, 1e-6);
}

TEST_F(ExportForms, OutputsThatAreNoneAreRefused) {
  const OnnxFile file = two_heads().file();
  EXPECT_THAT(refusal(file, {.keep = {"y", "nothing"}}),
              ::testing::AllOf(HasSubstr("nothing"), HasSubstr("its outputs are y, z")));
  EXPECT_THAT(refusal(file, {.keep = {"w"}}), HasSubstr("makes no value of this name"));
  EXPECT_THAT(refusal(file, {.keep = {"y", "y"}}), HasSubstr("named twice"));
  EXPECT_FALSE(std::filesystem::exists(changed_));
}

// ---------------------------------------------------------------- float16

TEST_F(ExportForms, HalfPrecisionComputesNearly) {
  for (const char* name : {"mlp_torchscript.onnx", "encoder_torchscript.onnx", "gpt_dynamo.onnx"}) {
    SCOPED_TRACE(name);
    export_both(OnnxFile::open(fixtures() / name), {.fp16 = true});
    EXPECT_LT(std::filesystem::file_size(changed_), std::filesystem::file_size(plain_));
    expect_near_results(plain_, changed_, 1e-2);
  }
}

TEST_F(ExportForms, HalfPrecisionStandsBetweenFloats) {
  ModelMaker m;
  m.input("x", {2, 4}).output("y").output("probability");
  m.weight("w", {4, 4}).weight("gamma", {4}).weight("both", {4});
  m.weight("huge", {4}, 1e30f).weight("tiny", {4}, 1e-12f);
  m.node("MatMul", {"x", "w"}, {"a"});
  m.node("Add", {"a", "both"}, {"b"});
  m.node("LayerNormalization", {"b", "gamma", "both"}, {"c"});
  m.node("Min", {"c", "huge"}, {"d"});
  m.node("Add", {"d", "tiny"}, {"y"});
  m.node("Softmax", {"d"}, {"probability"});
  const ExportResult written = export_both(m.file(), {.fp16 = true});
  EXPECT_THAT(written.note, HasSubstr("float16: 4 of 6 operators"));
  EXPECT_THAT(written.note, HasSubstr("1 weights beyond its range were clipped"));
  const onnx::ModelProto changed = parsed(changed_);
  constexpr int f32 = onnx::TensorProto::FLOAT, f16 = onnx::TensorProto::FLOAT16;
  for (const auto& input : changed.graph().input())
    EXPECT_EQ(input.type().tensor_type().elem_type(), f32);
  for (const auto& output : changed.graph().output())
    EXPECT_EQ(output.type().tensor_type().elem_type(), f32);
  const std::map<std::string, int> types = initializer_types(changed);
  EXPECT_EQ(types.at("w"), f16);
  EXPECT_EQ(types.at("gamma"), f32) << "of a normalization";
  EXPECT_EQ(types.at("both"), f32);
  EXPECT_EQ(types.at("both_fp16"), f16);
  // x, b to LayerNormalization and back, d to Softmax, y: one Cast each.
  EXPECT_EQ(operator_counts(changed)["Cast"], 5);
  for (const auto& tensor : changed.graph().initializer()) {
    if (tensor.name() != "tiny") continue;
    EXPECT_NE(tensor.raw_data().substr(0, 2), std::string(2, '\0')) << "0 would divide by zero";
  }
  expect_near_results(plain_, changed_, 1e-2);
}

// What a graph inside of a node captures keeps its type.
TEST_F(ExportForms, HalfPrecisionLeavesBranchesAlone) {
  ModelMaker m;
  m.input("x", {2, 4}).input("which", {}, onnx::TensorProto::BOOL).output("y");
  m.weight("w", {4, 4});
  m.node("MatMul", {"x", "w"}, {"a"});
  m.node("Relu", {"a"}, {"b"});
  onnx::NodeProto& choice = m.node("If", {"which"}, {"y"});
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::AttributeProto& attribute = *choice.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    onnx::GraphProto& graph = *attribute.mutable_g();
    graph.set_name(name);
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(std::string(name) == "then_branch" ? "Neg" : "Abs");
    node.add_input("b");
    node.add_output(std::string(name) + "_y");
    onnx::ValueInfoProto& output = *graph.add_output();
    output.set_name(std::string(name) + "_y");
    output.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  }
  export_both(m.file(), {.fp16 = true});
  const onnx::ModelProto changed = parsed(changed_);
  std::set<std::string> floats;  // those that Casts bring back
  for (const auto& node : changed.graph().node()) {
    if (node.op_type() == "Cast" && node.attribute(0).i() == onnx::TensorProto::FLOAT)
      floats.insert(node.output(0));
  }
  EXPECT_THAT(floats, Contains("b"));
}

// ---------------------------------------------------------------- another opset

TEST_F(ExportForms, OpsetsGoUpAndDown) {
  for (const int opset : {18, 21}) {
    SCOPED_TRACE(opset);
    ModelMaker m;
    m.input("x", {2, 4}).output("y").weight("w", {4, 5}).integers("axes", {1});
    m.node("MatMul", {"x", "w"}, {"a"});
    m.node("Relu", {"a"}, {"b"});
    m.node("ReduceSum", {"b", "axes"}, {"y"});
    auto& type = *m.graph().mutable_output(0)->mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    for (const int extent : {2, 1}) type.mutable_shape()->add_dim()->set_dim_value(extent);
    const ExportResult written = export_both(m.file(), {.opset = opset});
    EXPECT_EQ(written.note, "opset 20 became " + std::to_string(opset));
    const onnx::ModelProto changed = parsed(changed_);
    EXPECT_EQ(changed.opset_import(0).version(), opset);
    EXPECT_EQ(initializer_types(changed).count("w"), 1u) << "names stay";
    EXPECT_EQ(changed.graph().name(), "graph");
    expect_near_results(plain_, changed_, 1e-6);
  }
}

TEST_F(ExportForms, OpsetsOutOfReachAreRefused) {
  const OnnxFile file = two_heads().file();
  for (const int opset : {-1, 1, 6, 999})
    EXPECT_THAT(refusal(file, {.opset = opset}), HasSubstr("does not know this opset")) << opset;
  ModelMaker m;
  m.input("x", {2, 4}).output("y");
  m.node("Gelu", {"x"}, {"y"});  // only since opset 20
  EXPECT_THAT(
      refusal(m.file(), {.opset = 17}),
      ::testing::AllOf(HasSubstr("cannot bring the model to this opset: No "), HasSubstr("Gelu")));
}

TEST_F(ExportForms, SeveralGoTogether) {
  const ExportResult written =
      export_both(OnnxFile::open(fixtures() / "conv_bn_torchscript.onnx"),
                  {.keep = {"logits"}, .fold_batch_norm = true, .opset = 21});
  EXPECT_THAT(written.note, HasSubstr("folded 3 of 3"));
  const onnx::ModelProto changed = parsed(changed_);
  EXPECT_EQ(changed.opset_import(0).version(), 21);
  expect_near_results(plain_, changed_, 1e-6);
}

}  // namespace
}  // namespace tandem
