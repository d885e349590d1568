// Convolutions with impossible settings, and models that ONNX's text form cannot have. Other
// operators: tests/expected/import/operators.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "engine/graph/error.h"
#include "tests/importer/stages.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using namespace tandem::testing;
using Ints64 = std::vector<std::int64_t>;

struct OneNode {
  ModelMaker m;
  onnx::NodeProto* node = nullptr;
  OneNode(const std::string& op, const std::vector<std::string>& inputs) {
    m.output("y0");
    node = &m.node(op, inputs, {"y0"});
    node->set_name("the_node");
  }
  std::string error() {
    expect_same_diagnosis(m.bytes());
    return error_of([&] { import_graph(m.file(), engine_operators(), with_evaluator()); });
  }
};

struct Conv {
  Ints64 x{1, 4, 5, 5}, weight{2, 4, 3, 3};
  std::vector<std::pair<std::string, Ints64>> lists;
  std::int64_t group = 1;
};

TEST(BadOperator, Convolution) {
  const auto error = [](const Conv& c) {
    OneNode one("Conv", {"x", "w"});
    one.m.input("x", c.x).weight("w", c.weight);
    for (const auto& [name, values] : c.lists) set(*one.node, name, values);
    set(*one.node, "group", c.group);
    return one.error();
  };
  EXPECT_THAT(error({.group = 0}), HasSubstr("the_node"));
  EXPECT_THAT(error({.group = -1}), HasSubstr("the_node"));
  EXPECT_THAT(error({.group = 3}), HasSubstr("the_node"));
  EXPECT_THAT(error({.lists = {{"strides", {0, 1}}}}), HasSubstr("strides"));
  EXPECT_THAT(error({.lists = {{"dilations", {0, 1}}}}), HasSubstr("dilations"));
  EXPECT_THAT(error({.lists = {{"strides", {1}}}}), HasSubstr("strides"));
  EXPECT_THAT(error({.lists = {{"pads", {std::int64_t{1} << 62, 0, 0, 0}}}}), HasSubstr("pads"));
  EXPECT_THAT(error({.lists = {{"pads", {-1, 0, 0, 0}}}}), HasSubstr("pads"));
  EXPECT_THAT(error({.lists = {{"kernel_shape", {3, 2}}}}), HasSubstr("kernel_shape"));
  EXPECT_THAT(error({.weight = {2}}), HasSubstr("the_node"));
  EXPECT_THAT(error({.weight = {2, 4, 7, 7}}), HasSubstr("the_node"));
  EXPECT_THAT(error({.x = {4}}), HasSubstr("the_node"));
}

TEST(BadOperator, TransposedConvolution) {
  const auto error = [](const Conv& c) {
    OneNode one("ConvTranspose", {"x", "w"});
    one.m.input("x", c.x).weight("w", c.weight);
    for (const auto& [name, values] : c.lists) set(*one.node, name, values);
    set(*one.node, "group", c.group);
    return one.error();
  };
  const Ints64 weight{4, 2, 3, 3};
  EXPECT_THAT(error({}), HasSubstr("channels"));
  EXPECT_THAT(error({.weight = weight, .group = 3}), HasSubstr("channels"));
  EXPECT_THAT(error({.weight = weight, .group = -1}), HasSubstr("channels"));
  for (const char* name : {"strides", "dilations", "pads", "output_padding", "output_shape"}) {
    EXPECT_THAT(error({.weight = weight, .lists = {{name, {-1, 0}}}}), HasSubstr(name));
    EXPECT_THAT(error({.weight = weight, .lists = {{name, {2, 2, 2}}}}), HasSubstr(name));
    EXPECT_THAT(error({.weight = weight, .lists = {{name, {std::int64_t{1} << 62, 2}}}}),
                HasSubstr(name));
  }
  EXPECT_THAT(error({.weight = weight, .lists = {{"pads", {9, 9, 9, 9}}}}),
              HasSubstr("no elements"));
  const std::int64_t large = 1 << 30;
  EXPECT_THAT(error({.weight = weight, .lists = {{"strides", {large, large}}}}),
              HasSubstr("the_node"));
}

// ONNX's text form has no NaN.
TEST(BadOperator, NumbersThatAreNone) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const auto add = [](OneNode& one, const std::string& name, float value) {
    onnx::TensorProto& tensor = *one.m.graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_float_data(value);
  };
  OneNode range("Range", {"start", "limit", "delta"});
  add(range, "start", 0);
  add(range, "limit", nan);
  add(range, "delta", 1);
  EXPECT_THAT(range.error(), HasSubstr("the_node"));
  OneNode dropout("Dropout", {"x", "ratio", "mode"});
  dropout.m.input("x", {4});
  add(dropout, "ratio", nan);
  onnx::TensorProto& mode = *dropout.m.graph().add_initializer();
  mode.set_name("mode");
  mode.set_data_type(onnx::TensorProto::BOOL);
  mode.add_int32_data(1);
  EXPECT_THAT(dropout.error(), HasSubstr("ratio"));
}

TEST(BadOperator, InputExtents) {
  ModelMaker m;
  m.input("x", {2, -3}).output("y");
  m.node("Relu", {"x"}, {"y"});
  EXPECT_THAT(error_of([&] { import_graph(m.file(), engine_operators(), with_evaluator()); }),
              HasSubstr("bad extent"));
  ModelMaker quoted;
  quoted.free_input("x", {"N", "seq \"len\"", "8"}).output("y");
  quoted.node("Relu", {"x"}, {"y"});
  EXPECT_THAT(error_of([&] { import_graph(quoted.file(), engine_operators(), with_evaluator()); }),
              HasSubstr(R"(the key model.bind."seq \"len\""=N; `inspect`)"));
}

TEST(BadOperator, AllProblemsAreCollected) {
  ModelMaker m;
  m.input("x", {2, 3}).output("y").output("z");
  m.node("ImageDecoder", {"x"}, {"a"}).set_name("first");
  m.node("Relu", {"a"}, {"b"});
  m.node("RegexFullMatch", {"x"}, {"c"}).set_name("second");
  m.node("ImageDecoder", {"c"}, {"d"}).set_name("after");
  m.node("Identity", {"b"}, {"y"});
  m.node("Identity", {"d"}, {"z"});
  ImportOptions options = with_evaluator();
  options.collect_problems = true;
  const ImportResult result = import_graph(m.file(), engine_operators(), options);
  ASSERT_EQ(result.summary.problems.size(), 2u);
  EXPECT_EQ(result.summary.problems[0].kind, "unsupported_operator");
  EXPECT_EQ(result.summary.problems[0].op, "ImageDecoder");
  EXPECT_EQ(result.summary.problems[0].path, "first");
  EXPECT_EQ(result.summary.operators.at("ImageDecoder"), 2);
}

}  // namespace
}  // namespace tandem
