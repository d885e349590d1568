// Weights under names that an exporter made up: numbers, onnx::Transpose_5.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace tandem::testing;

std::vector<std::string> trained(const ModelMaker& m) {
  const ImportResult result = import_graph(m.file(), engine_operators(), with_evaluator());
  std::vector<std::string> names;
  for (const ParameterSummary& p : result.summary.parameters) {
    if (p.trainable) names.push_back(p.name);
  }
  return names;
}

/// Before IR version 4, what has a value was an input as well.
ModelMaker& numbered_weight(ModelMaker& m, const std::string& name,
                            const std::vector<std::int64_t>& shape) {
  return m.input(name, shape).weight(name, shape);
}

// As PyTorch 0.3 wrote a module with a parameter of its own, and a Linear without a bias.
TEST(MadeUpNames, NumbersAreNamesWhereAFileHasNoOthers) {
  ModelMaker added;
  added.input("0", {2, 2}).output("3");
  numbered_weight(added, "1", {2, 2});
  added.node("Add", {"0", "1"}, {"2"});
  added.node("Tanh", {"2"}, {"3"});
  EXPECT_THAT(trained(added), ElementsAre("1"));
  ModelMaker linear;
  linear.input("0", {2, 3}).output("3");
  numbered_weight(linear, "1", {4, 3});
  set(linear.node("Transpose", {"1"}, {"2"}), "perm", std::vector<std::int64_t>{1, 0});
  linear.node("MatMul", {"0", "2"}, {"3"});
  EXPECT_THAT(trained(linear), ElementsAre("1"));
}

TEST(MadeUpNames, NumbersBesideNamesAreConstants) {
  ModelMaker m;
  m.input("x", {2, 3}).output("y");
  numbered_weight(m, "fc.weight", {3, 3});
  numbered_weight(m, "7", {3});
  m.node("MatMul", {"x", "fc.weight"}, {"a"});
  m.node("Add", {"a", "7"}, {"y"});
  EXPECT_THAT(trained(m), ElementsAre("fc.weight"));
  ModelMaker later;  // where no initializer is an input, what is computed has no other name
  later.input("x", {2, 3}).output("y").weight("7", {3});
  later.node("Add", {"x", "7"}, {"y"});
  EXPECT_THAT(trained(later), IsEmpty());
}

TEST(MadeUpNames, WhatIsMovedToThePlaceOfAWeightIsOne) {
  ModelMaker m;
  m.input("x", {2, 4}).output("y").weight("fc.weight", {4, 4});
  m.weight("onnx::Transpose_5", {4, 4}).weight("val_7", {4, 4});
  m.weight("onnx::PRelu_8", {4}).weight("onnx::Unsqueeze_9", {4});
  m.integers("axis", {0});
  m.node("MatMul", {"x", "fc.weight"}, {"a"});
  m.node("Transpose", {"onnx::Transpose_5"}, {"t"});
  m.node("Identity", {"t"}, {"same"});
  m.node("MatMul", {"a", "same"}, {"b"});
  m.node("PRelu", {"b", "onnx::PRelu_8"}, {"c"});
  m.node("Transpose", {"val_7"}, {"u"});  // to no such place
  m.node("Slice", {"u", "from", "to", "axis"}, {"two"});
  m.integers("from", {0}).integers("to", {2});
  m.node("Add", {"c", "two"}, {"d"});
  m.node("Unsqueeze", {"onnx::Unsqueeze_9", "axis"}, {"row"});
  m.node("Mul", {"d", "row"}, {"y"});
  EXPECT_THAT(trained(m), ElementsAre("fc.weight", "onnx::Transpose_5", "onnx::PRelu_8"));
}

// A convolution of images whose channels are last, and a Dense, as Keras's export on PyTorch leaves
// them.
TEST(MadeUpNames, WhatIsAddedToAProductThatLostItsNameIsABias) {
  ModelMaker m;
  m.input("x", {2, 5, 5, 3}).output("y").weight("onnx::Conv_1", {4, 3, 3, 3});
  m.weight("onnx::Add_2", {1, 1, 1, 4}).weight("onnx::Mul_3", {1, 1, 1, 4});
  m.weight("onnx::Add_4", {1, 1, 1, 4}).weight("onnx::MatMul_5", {4, 2}).weight("onnx::Add_6", {2});
  m.weight("onnx::Add_7", {2, 3, 2}).weight("onnx::MatMul_8", {2, 2}).weight("onnx::Add_9", {1});
  set(m.node("Transpose", {"x"}, {"first"}), "perm", std::vector<std::int64_t>{0, 3, 1, 2});
  m.node("Conv", {"first", "onnx::Conv_1"}, {"convolved"});
  set(m.node("Transpose", {"convolved"}, {"last"}), "perm", std::vector<std::int64_t>{0, 2, 3, 1});
  m.integers("begin", {1}).integers("end", {5}).integers("axis", {1});
  m.node("Slice", {"last", "begin", "end", "axis"}, {"cropped"});
  m.node("Add", {"cropped", "onnx::Add_2"}, {"a"});
  m.node("Mul", {"a", "onnx::Mul_3"}, {"b"});  // the scale of a normalization that was folded
  m.node("Add", {"b", "onnx::Add_4"}, {"c"});
  m.node("MatMul", {"c", "onnx::MatMul_5"}, {"d"});
  m.node("Add", {"onnx::Add_6", "d"}, {"e"});
  m.node("MatMul", {"e", "onnx::MatMul_8"}, {"f"});
  m.node("Add", {"f", "onnx::Add_7"}, {"g"});  // positions: a number for each place
  m.node("Add", {"f", "onnx::Add_9"}, {"h"});  // one number for both columns
  m.node("Mul", {"g", "h"}, {"y"});
  EXPECT_THAT(trained(m), ElementsAre("onnx::Conv_1", "onnx::Add_2", "onnx::MatMul_5",
                                      "onnx::Add_6", "onnx::MatMul_8"));
}

// An InstanceNormalization without weights has ones and zeros as well.
TEST(MadeUpNames, OnesAndZerosOfAnInstanceNormalizationAreConstants) {
  ModelMaker m;
  m.input("x", {2, 3, 4}).output("y").weight("scale", {3, 1});
  m.weight("onnx::InstanceNormalization_5", {3}).weight("onnx::InstanceNormalization_6", {3});
  m.node("InstanceNormalization",
         {"x", "onnx::InstanceNormalization_5", "onnx::InstanceNormalization_6"}, {"n"});
  m.node("Mul", {"n", "scale"}, {"y"});
  ImportOptions options = with_evaluator();
  options.collect_problems = true;
  const ImportResult result = import_graph(m.file(), engine_operators(), options);
  for (const ParameterSummary& p : result.summary.parameters) {
    if (p.name == "scale") continue;
    EXPECT_THAT(p.reason, HasSubstr("computed by the exporter")) << p.name;
  }
}

}  // namespace
}  // namespace tandem
