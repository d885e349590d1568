// NaN in operators that choose among numbers, on every kernel of the CPU: as in PyTorch
// (torch.relu, clamp, maximum, minimum, amax, max_pool2d, where, dropout and their gradients). Two
// differ: Sign keeps NaN as numpy's does, where PyTorch gives 0; the cast to integers gives 0,
// where PyTorch leaves the result open.
#include <cmath>

#include "tests/harness/poisoned_case.h"
#include "tests/operators/basic_tables.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

using basic::infinity;
using basic::nan;

HostTensor floats(Shape shape, const std::vector<double>& values) {
  return HostTensor::from<double>(std::move(shape), values).converted(DType::float32);
}
HostTensor row(const std::vector<double>& values) {
  return floats({static_cast<std::int64_t>(values.size())}, values);
}
HostTensor booleans(const std::vector<double>& values) {
  return HostTensor::from<double>({static_cast<std::int64_t>(values.size())}, values)
      .converted(DType::boolean);
}

/// Compares output 0 on every kernel that takes the node if only that output is read.
void expect_result(const std::string& op, const std::vector<HostTensor>& inputs,
                   const Attributes& attributes, const std::vector<double>& expected) {
  SCOPED_TRACE(op);
  const Graph graph = single_node(op, inputs, attributes);
  const Node& node = graph.nodes[0];
  RunOptions options;
  options.only_output = 0;
  int ran = 0;
  for (const Kernel& kernel : cpu_list()) {
    if (!takes_node(kernel, graph, node, host_facts(), node.outputs.size() > 1)) continue;
    SCOPED_TRACE(kernel.name);
    ++ran;
    const HostTensor y = run_node(kernel, graph, node, inputs, options)[0];
    EXPECT_EQ(compare(y, HostTensor::from<double>(y.shape(), expected), 1e-6), "");
  }
  EXPECT_GT(ran, 0) << "no kernel takes it";
}

Attributes square_window() {
  return {{"kernel_shape", Ints{2, 2}},
          {"strides", Ints{2, 2}},
          {"pads", Ints{0, 0, 0, 0}},
          {"dilations", Ints{1, 1}}};
}

TEST(Nan, StaysInActivations) {
  const HostTensor x = row({nan, -1, 2, -infinity, infinity});
  expect_result("Relu", {x}, {}, {nan, 0, 2, 0, infinity});
  expect_result("LeakyRelu", {x}, {{"alpha", 0.5}}, {nan, -0.5, 2, -infinity, infinity});
  expect_result("Clip", {x}, {{"min", -0.5}, {"max", 3.0}}, {nan, -0.5, 2, -0.5, 3});
  expect_result("Sign", {x}, {}, {nan, -1, 1, -1, 1});
}

TEST(Nan, WinsAmongNumbers) {
  const HostTensor a = row({nan, 1, 2, nan, 4}), b = row({1, nan, 3, nan, 0});
  expect_result("Max", {a, b}, {}, {nan, nan, 3, nan, 4});
  expect_result("Min", {a, b}, {}, {nan, nan, 2, nan, 0});
  expect_result("ReduceMax", {floats({3, 2}, {nan, 1, 2, nan, 3, 4})},
                {{"axes", Ints{1}}, {"keepdims", std::int64_t{0}}}, {nan, nan, 4});
}

TEST(Nan, IsUnequalAndComparesFalse) {
  const HostTensor a = row({nan, nan, 1}), b = row({nan, 1, nan});
  for (const char* op : {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"})
    expect_result(op, {a, b}, {}, {0, 0, 0});
}

TEST(Nan, OfTheOtherBranchDoesNotShow) {
  expect_result("Where", {booleans({1, 0, 1, 0}), row({nan, nan, 1, 2}), row({3, 4, nan, nan})}, {},
                {nan, 4, 1, nan});
}

TEST(Nan, IsZeroAmongIntegers) {
  expect_result("Cast", {row({nan, 2.5})}, {{"to", std::string("int64")}}, {0, 2});
}

// A NaN before, after and between numbers, in full vectors and in the elements that are left over.
TEST(Nan, WinsInEveryPlaceOfAWindow) {
  for (const std::int64_t channels : {1, 3, 8, 19}) {
    for (int place = 0; place < 4; ++place) {
      SCOPED_TRACE(std::to_string(channels) + " channels, place " + std::to_string(place));
      std::vector<double> x, dx;
      for (std::int64_t c = 0; c < channels; ++c) {
        for (int i = 0; i < 4; ++i) {
          x.push_back(i == place ? nan : i + 1);
          dx.push_back(i == place ? 5 : 0);
        }
      }
      const std::vector<double> y(static_cast<std::size_t>(channels), nan);
      const std::vector<double> dy(static_cast<std::size_t>(channels), 5);
      const HostTensor in = floats({1, channels, 2, 2}, x);
      expect_result("MaxPool", {in}, square_window(), y);
      expect_result("MaxPoolGrad",
                    {in, floats({1, channels, 1, 1}, y), floats({1, channels, 1, 1}, dy)},
                    square_window(), dx);
    }
  }
}

TEST(Nan, StaysInEpilogues) {
  const Attributes plain{{"strides", Ints{1, 1}},
                         {"pads", Ints{0, 0, 0, 0}},
                         {"dilations", Ints{1, 1}},
                         {"activation", std::string("Relu")}};
  for (const std::int64_t channels : {1, 8, 40}) {
    SCOPED_TRACE(channels);
    std::vector<double> x(static_cast<std::size_t>(channels * 9), 1);
    x[4] = nan;  // in channel 0
    const auto count = static_cast<std::size_t>(channels * channels * 4);
    std::vector<double> y;
    for (std::int64_t c = 0; c < channels; ++c) y.insert(y.end(), 4, nan);
    const HostTensor image = floats({1, channels, 3, 3}, x);
    const HostTensor weight = floats({channels, channels, 2, 2}, std::vector<double>(count, 1));
    expect_result("ConvFused", {image, weight, HostTensor(), HostTensor()}, plain, y);
  }
  const HostTensor a = floats({2, 2}, {nan, 1, 1, -2}), b = floats({2, 2}, {1, 1, 1, 1});
  expect_result("Gemm", {a, b, HostTensor(), HostTensor()}, {{"activation", std::string("Relu")}},
                {nan, nan, 0, 0});
}

// x Phi(x) is infinity times 0 at -infinity, and 0 far below 0. Rows have odd lengths, on both
// sides of a vector's end.
TEST(Nan, IsTheGeluOfMinusInfinity) {
  for (const char* activation : {"Gelu", "GeluTanh"}) {
    SCOPED_TRACE(activation);
    for (const std::int64_t n : {1, 8, 19}) {
      std::vector<double> x, y;
      for (const auto& [from, to] : {std::pair{-infinity, nan},
                                     {infinity, infinity},
                                     {nan, nan},
                                     {-3e38, 0.0},
                                     {-1e20, 0.0},
                                     {3e38, 3e38},
                                     {-20.0, 0.0},
                                     {20.0, 20.0}}) {
        x.push_back(from);
        y.insert(y.end(), static_cast<std::size_t>(n), to);
      }
      const auto rows = static_cast<std::int64_t>(x.size());
      const HostTensor ones = floats({1, n}, std::vector<double>(static_cast<std::size_t>(n), 1));
      expect_result("Gemm", {floats({rows, 1}, x), ones, HostTensor(), HostTensor()},
                    {{"activation", std::string(activation)}}, y);
    }
    const std::string form = activation == std::string("Gelu") ? "none" : "tanh";
    expect_result("Gelu", {row({-infinity, infinity, nan, -3e38, 3e38})}, {{"approximate", form}},
                  {nan, infinity, nan, 0, 3e38});
  }
}

TEST(Nan, OfTheResultLetsGradientsOfReluPass) {
  const HostTensor dy = row({1, 2, 3, nan, nan});
  expect_result("ReluGrad", {dy, row({nan, 0, 1, 0, 1})}, {}, {1, 0, 3, 0, nan});
  expect_result("LeakyReluGrad", {dy, row({nan, -1, 1, -1, 1})}, {{"alpha", 0.5}},
                {0.5, 1, 3, nan, nan});
  expect_result("ClipGrad", {dy, row({nan, 2, 0, 2, 0})}, {{"min", -1.0}, {"max", 1.0}},
                {0, 0, 3, 0, nan});
  const HostTensor a = floats({1, 1}, {2}), b = floats({1, 3}, {1, 1, 1});
  expect_result("Gemm", {a, b, HostTensor(), floats({1, 3}, {nan, 0, 1})},
                {{"activation", std::string("ReluGrad")}}, {2, 0, 2});
}

TEST(Nan, ShowsWhateverDropoutDrops) {
  std::vector<double> x(100, nan);
  expect_result("Dropout", {row(x)}, {{"ratio", 0.5}}, x);
  std::vector<double> mask(100);
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = static_cast<double>(i % 2);
  expect_result("DropoutGrad", {row(x), booleans(mask)}, {{"ratio", 0.5}}, x);
}

/// The gradients of the operator's inputs for a dy of ones.
std::vector<HostTensor> gradients(const std::string& op, const std::vector<HostTensor>& inputs,
                                  const Attributes& attributes) {
  const Graph graph = single_node(op, inputs, attributes);
  GraphBuilder g(operator_set(), graph);
  const Node node = graph.nodes[0];
  const std::vector<ValueId> dy{g.filled(1, graph.type(node.outputs[0]))};
  const std::vector<bool> wanted(inputs.size(), true);
  GradientContext context{g, node, dy, wanted};
  const Gradients dx = node.op->gradient(context);
  std::vector<std::pair<std::string, HostTensor>> feeds;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    feeds.emplace_back("x" + std::to_string(i), inputs[i]);
  return evaluate(g.graph(), feeds, dx);
}

// Like torch.maximum and torch.minimum: if either operand is NaN, both get the gradient.
TEST(Nan, TakesTheGradientOfExtremaToBothOperands) {
  const HostTensor a = row({nan, 1, 2, 3}), b = row({1, nan, 2, 1});
  const auto of_max = gradients("Max", {a, b}, {});
  EXPECT_EQ(compare(of_max[0], row({1, 1, 0.5, 1}), 0), "");
  EXPECT_EQ(compare(of_max[1], row({1, 1, 0.5, 0}), 0), "");
  const auto of_min = gradients("Min", {a, b}, {});
  EXPECT_EQ(compare(of_min[0], row({1, 1, 0.5, 0}), 0), "");
  EXPECT_EQ(compare(of_min[1], row({1, 1, 0.5, 1}), 0), "");
}

// Like torch.amax: elements equal to the maximum share dy, and none equals NaN: 0 / 0.
TEST(Nan, MakesTheGradientOfAMaximumNaN) {
  const auto dx = gradients("ReduceMax", {floats({2, 2}, {nan, 1, 2, 3})},
                            {{"axes", Ints{1}}, {"keepdims", std::int64_t{0}}});
  EXPECT_EQ(compare(dx[0], floats({2, 2}, {nan, nan, 0, 1}), 0), "");
}

// A NaN score of a visible key does not mean that the key is hidden.
TEST(Nan, IsNoHiddenKey) {
  const HostTensor q = floats({1, 1, 1, 1}, {nan}), k = floats({1, 1, 2, 1}, {1, 1});
  const HostTensor mask = floats({1, 1, 1, 2}, {0, -infinity});
  expect_result("Attention", {q, k, k, mask}, {{"scale", 1.0}}, {nan});
}

}  // namespace
}  // namespace tandem::testing
