// The reverse walk: sums over several uses, stops where nothing is wanted, names all missing
// gradients.
#include "engine/gradient/gradient.h"

#include <gtest/gtest.h>

#include "tests/harness/operator_case.h"

namespace tandem {
namespace {

class GradientTest : public ::testing::Test {
 protected:
  OperatorSet operators_ = all_operators();
  GraphBuilder g_{operators_};
  ValueId input(const char* name, Shape shape) {
    return g_.input(name, {DType::float64, std::move(shape)});
  }
  ValueId sum(ValueId x) {
    Ints axes;
    for (std::size_t i = 0; i < g_.shape(x).size(); ++i)
      axes.push_back(static_cast<std::int64_t>(i));
    return g_.reduce_sum(x, axes, false);
  }
  std::vector<ValueId> gradients(ValueId loss, std::vector<ValueId> wanted) {
    const GradientSeed seed{loss, g_.scalar(1, DType::float64)};
    return add_gradients(g_, std::span(&seed, 1), wanted);
  }
};

TEST_F(GradientTest, UsesAreSummed) {
  const ValueId x = input("x", {2});
  const ValueId loss = sum(g_.add(g_.mul(x, x), x));  // dx = 2 x + 1
  const auto dx = gradients(loss, {x});
  const auto got =
      testing::evaluate(g_.graph(), {{"x", HostTensor::from<double>({2}, {3, -2})}}, {dx[0]});
  EXPECT_DOUBLE_EQ(got[0].as<double>()[0], 7);
  EXPECT_DOUBLE_EQ(got[0].as<double>()[1], -3);
}

TEST_F(GradientTest, BroadcastOperandsGetTheirOwnShape) {
  const ValueId x = input("x", {2, 3}), b = input("b", {3});
  const auto d = gradients(sum(g_.mul(x, b)), {x, b});
  EXPECT_EQ(g_.shape(d[1]), Shape({3}));
}

TEST_F(GradientTest, WhatDoesNotReachTheLossHasNone) {
  const ValueId x = input("x", {2}), unused = input("unused", {2});
  const auto d = gradients(sum(x), {x, unused});
  EXPECT_TRUE(d[0]);
  EXPECT_FALSE(d[1]);
}

TEST_F(GradientTest, BackwardNodesKeepPathAndOrigin) {
  const ValueId x = input("x", {2});
  g_.set_scope({"block.Exp", Phase::forward, {}});
  const ValueId y = g_.add_node("Exp", {x});
  g_.set_scope({"loss", Phase::forward, {}});
  const std::size_t before = g_.graph().nodes.size() + 1;
  gradients(sum(y), {x});
  bool found = false;
  for (std::size_t i = before; i < g_.graph().nodes.size(); ++i) {
    const Node& node = g_.graph().nodes[i];
    EXPECT_EQ(node.phase, Phase::backward);
    found = found ||
            (node.path == "block.Exp" && node.origins == std::vector<std::string>{"block.Exp"});
  }
  EXPECT_TRUE(found);
}

TEST_F(GradientTest, AllMissingGradientsAreNamedAtOnce) {
  const ValueId x = input("x", {2});
  g_.set_scope({"first", Phase::forward, {}});
  const ValueId a = g_.node("TanhGrad", {x, x})[0];
  g_.set_scope({"second", Phase::forward, {}});
  const ValueId b = g_.node("SigmoidGrad", {a, x})[0];
  const ValueId loss = sum(b);
  const ValueId values[] = {loss}, wanted[] = {x};
  EXPECT_EQ(missing_gradients(g_.graph(), values, wanted).size(), 2u);
  try {
    gradients(loss, {x});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    std::vector<std::string> paths;
    for (const Diagnostic& d : error.diagnostics()) paths.push_back(d.path);
    EXPECT_EQ(paths, (std::vector<std::string>{"second", "first"}));
  }
}

TEST_F(GradientTest, ConditionsNeedNoGradient) {
  const ValueId x = input("x", {2}), y = input("y", {2});
  const ValueId condition = g_.node("Greater", {x, y})[0];
  const ValueId loss = sum(g_.node("Where", {condition, x, y})[0]);
  const ValueId values[] = {loss}, wanted[] = {x};
  EXPECT_TRUE(missing_gradients(g_.graph(), values, wanted).empty());
  EXPECT_TRUE(gradients(loss, {x})[0]);
}

}  // namespace
}  // namespace tandem
