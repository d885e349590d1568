// Properties of the network operators that case tables cannot express: windows, indices, bad
// labels, running statistics, and errors for wrong shapes.
#include <cmath>

#include "engine/operators/grouped_update.h"
#include "engine/operators/window.h"
#include "tests/operators/network_cases.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

TEST(Windows, CountsAsOnnxAndPyTorch) {
  EXPECT_EQ(window_count(7, {.kernel = 3, .stride = 2}), 3);
  EXPECT_EQ(window_count(8, {.kernel = 3, .stride = 2}), 3);
  EXPECT_EQ(window_count(8, {.kernel = 3, .stride = 2}, true), 4);
  EXPECT_EQ(window_count(5, {.kernel = 1, .stride = 3}, true), 2);
  EXPECT_EQ(window_count(5, {.kernel = 3, .dilation = 2}), 1);
  EXPECT_EQ(window_count(4, {.kernel = 3, .dilation = 2}), 0);
  // The fourth window would start in the padding at the end.
  EXPECT_EQ(window_count(6, {.kernel = 2, .stride = 3, .pad_begin = 1, .pad_end = 1}, true), 3);
  EXPECT_EQ(window_count(5, {.kernel = 2, .stride = 3, .pad_begin = 1, .pad_end = 1}, true), 2);
  // Only with ceil_mode may one window be larger than the input.
  EXPECT_EQ(window_count(2, {.kernel = 3, .stride = 2}), 0);
  EXPECT_EQ(window_count(2, {.kernel = 3, .stride = 2}, true), 1);
}

// The example in ONNX's specification: 5 x 5 numbers, indices in both storage orders.
TEST(MaxPool, IndicesInBothOrders) {
  std::vector<float> values(50);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 25 + 1);
  const std::vector<HostTensor> inputs{HostTensor::from<float>({1, 2, 5, 5}, values)};
  for (const bool column_major : {false, true}) {
    const Graph graph = single_node("MaxPool", inputs,
                                    {{"kernel_shape", Ints{2, 2}},
                                     {"strides", Ints{2, 2}},
                                     {"pads", Ints{0, 0, 0, 0}},
                                     {"dilations", Ints{1, 1}},
                                     {"storage_order", column_major ? 1 : 0}});
    each_kernel(graph, [&](const Kernel& kernel) {
      const std::vector<HostTensor> y = run_node(kernel, graph, graph.nodes[0], inputs);
      EXPECT_EQ(
          compare(y[0], HostTensor::from<float>({1, 2, 2, 2}, {7, 9, 17, 19, 7, 9, 17, 19}), 0),
          "");
      const std::vector<std::int64_t> expected =
          column_major ? std::vector<std::int64_t>{6, 16, 8, 18, 31, 41, 33, 43}
                       : std::vector<std::int64_t>{6, 8, 16, 18, 31, 33, 41, 43};
      EXPECT_EQ(y[1].integers(), expected);
    });
  }
}

TEST(MaxPool, NotANumberWins) {
  const std::vector<HostTensor> inputs{
      HostTensor::from<float>({1, 1, 4}, {1, std::nanf(""), 3, 2})};
  const Graph graph = single_node("MaxPool", inputs,
                                  {{"kernel_shape", Ints{2}},
                                   {"strides", Ints{2}},
                                   {"pads", Ints{0, 0}},
                                   {"dilations", Ints{1}}});
  const Kernel* kernel = choose_kernel(reference_list(), plain_request(graph, graph.nodes[0]));
  const HostTensor y = run_node(*kernel, graph, graph.nodes[0], inputs)[0];
  EXPECT_TRUE(std::isnan(y.as<float>()[0]));
  EXPECT_EQ(y.as<float>()[1], 3);
}

struct BadLabel {
  const char* op;
  std::vector<HostTensor> inputs;
  Attributes attributes;
};

std::vector<BadLabel> bad_labels(std::int64_t bad) {
  const HostTensor scores = HostTensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const HostTensor labels = HostTensor::from<std::int64_t>({2}, {1, bad});
  const HostTensor dlosses = HostTensor::from<float>({2}, {1, 1});
  const HostTensor lse = HostTensor::from<float>({2}, {3.4f, 6.4f});
  return {{"SoftmaxCrossEntropy", {scores, labels, {}}, {}},
          {"SoftmaxCrossEntropyGrad", {dlosses, scores, labels, {}, lse}, {}},
          {"SoftmaxCrossEntropyWithGrad", {dlosses, scores, labels, {}}, {}},
          {"NegativeLogLikelihood", {scores, labels, {}}, {}},
          {"NegativeLogLikelihoodGrad", {dlosses, labels, {}}, {{"shape", Ints{2, 3}}}},
          {"LabelWeights", {labels, {}}, {{"ignore_index", -1}, {"classes", 3}}}};
}

std::string bits_of(const HostTensor& x) { return {static_cast<const char*>(x.data()), x.bytes()}; }

HostTensor scaled_pattern(const Shape& shape, std::int64_t step, float factor) {
  HostTensor x(TensorType{DType::float32, shape});
  std::int64_t i = 0;
  for (float& value : x.as<float>())
    value = factor * static_cast<float>((i++ * step) % 101 - 50) / 50;
  return x;
}

// Lowering replaces the two nodes by one, which must not change any bit.
TEST(SoftmaxCrossEntropy, LossesAndGradientInOneHaveTheSameBits) {
  for (const Shape& shape :
       {Shape{7, 33}, Shape{3, 2000}, Shape{300, 10}, Shape{2, 5, 3, 4}, Shape{2, 70, 131}}) {
    Shape marks = shape;
    marks.erase(marks.begin() + 1);
    const HostTensor logits = scaled_pattern(shape, 37, 9);
    HostTensor labels(TensorType{DType::int64, marks}), weights = scaled_pattern(marks, 7, 2);
    std::int64_t i = 0;
    for (std::int64_t& label : labels.as<std::int64_t>()) label = i++ % shape[1];
    weights.as<float>()[1] = 0;
    const HostTensor dlosses = scaled_pattern(marks, 11, 0.3f);
    for (const double smoothing : {0.0, 0.1}) {
      const Attributes attributes{{"label_smoothing", smoothing}};
      const auto run = [&](const std::string& kernels, const std::string& op,
                           const std::vector<HostTensor>& inputs) {
        const Graph graph = single_node(op, inputs, attributes);
        std::vector<HostTensor> results;
        each_kernel(graph, [&](const Kernel& kernel) {
          if (kernel.name.starts_with(kernels))
            results = run_node(kernel, graph, graph.nodes[0], inputs);
        });
        return results;
      };
      for (const char* kernels : {"cpu.", "reference."}) {
        SCOPED_TRACE(kernels + to_string(shape));
        const auto losses = run(kernels, "SoftmaxCrossEntropy", {logits, labels, weights});
        ASSERT_EQ(losses.size(), 2u);
        const auto gradient =
            run(kernels, "SoftmaxCrossEntropyGrad", {dlosses, logits, labels, weights, losses[1]});
        const auto both =
            run(kernels, "SoftmaxCrossEntropyWithGrad", {dlosses, logits, labels, weights});
        ASSERT_EQ(both.size(), 3u);
        EXPECT_EQ(bits_of(both[0]) == bits_of(losses[0]), true);
        EXPECT_EQ(bits_of(both[1]) == bits_of(losses[1]), true);
        EXPECT_EQ(bits_of(both[2]) == bits_of(gradient[0]), true);
      }
    }
  }
}

TEST(Labels, OutsideOfTheClassesAreReported) {
  for (const std::int64_t bad : {3, -1, 1000000}) {
    for (const BadLabel& c : bad_labels(bad)) {
      const Graph graph = single_node(c.op, c.inputs, c.attributes);
      each_kernel(graph, [&](const Kernel& kernel) {
        ErrorWord error;
        RunOptions options;
        options.error = &error;
        const std::vector<HostTensor> y =
            run_node(kernel, graph, graph.nodes[0], c.inputs, options);
        EXPECT_EQ(error.packed.load() >> 32, ErrorWord::bad_label) << c.op;
        EXPECT_EQ(error.value.load(), bad) << c.op;
        for (std::int64_t i = 0; i < y[0].type().elements(); ++i) {
          EXPECT_TRUE(std::isfinite(y[0].number(i))) << c.op << " must clamp";
        }
      });
    }
  }
}

TEST(Labels, GoodAndIgnoredOnesAreNotReported) {
  const auto expect_silence = [](const BadLabel& c) {
    const Graph graph = single_node(c.op, c.inputs, c.attributes);
    each_kernel(graph, [&](const Kernel& kernel) {
      ErrorWord error;
      RunOptions options;
      options.error = &error;
      run_node(kernel, graph, graph.nodes[0], c.inputs, options);
      EXPECT_EQ(error.packed.load(), 0) << c.op;
    });
  };
  for (const BadLabel& c : bad_labels(2)) expect_silence(c);
  for (BadLabel c : bad_labels(-1)) {
    if (std::string(c.op) == "LabelWeights") {
      c.attributes.set("ignore", std::int64_t{1});
    } else {
      for (HostTensor& input : c.inputs) {  // the labels' weights
        if (input.data() == nullptr) input = HostTensor::from<float>({2}, {1, 0});
      }
    }
    expect_silence(c);
  }
}

// Two steps of new = momentum * old + (1 - momentum) * batch, with the population variance.
TEST(BatchNormalizationTraining, RunningStatistics) {
  std::vector<HostTensor> inputs{
      HostTensor::from<float>({2, 2, 1, 2}, {1, 3, 10, 10, 5, 7, 20, 40}),
      HostTensor::from<float>({2}, {1, 1}), HostTensor::from<float>({2}, {0, 0}),
      HostTensor::from<float>({2}, {0, 0}), HostTensor::from<float>({2}, {1, 1})};
  const Graph graph =
      single_node("BatchNormalizationTraining", inputs, {{"epsilon", 0.25}, {"momentum", 0.75}});
  each_kernel(graph, [&](const Kernel& kernel) {
    std::vector<HostTensor> now = inputs;
    const double mean[2] = {4, 20}, var[2] = {5, 150};
    double running_mean[2] = {0, 0}, running_var[2] = {1, 1};
    for (int step = 0; step < 2; ++step) {
      const std::vector<HostTensor> y = run_node(kernel, graph, graph.nodes[0], now);
      for (std::int64_t c = 0; c < 2; ++c) {
        running_mean[c] = 0.75 * running_mean[c] + 0.25 * mean[c];
        running_var[c] = 0.75 * running_var[c] + 0.25 * var[c];
        EXPECT_NEAR(y[1].number(c), running_mean[c], 1e-5);
        EXPECT_NEAR(y[2].number(c), running_var[c], 1e-4);
        EXPECT_NEAR(y[3].number(c), mean[c], 1e-5);
        EXPECT_NEAR(y[4].number(c), 1 / std::sqrt(var[c] + 0.25), 1e-6);
      }
      now[3] = y[1];
      now[4] = y[2];
    }
  });
}

TEST(GroupedUpdate, Aliases) {
  const OperatorSet operators = all_operators();
  const auto aliases = [&](const char* weight, std::vector<int> absent, int inputs, int outputs) {
    Node node;
    node.op = &operators.get("GroupedUpdate");
    node.attributes = {{"op", std::string("AdamUpdate")}, {"count", 2}};
    node.attributes.set("weight", std::string(weight));
    for (int i = 0; i < inputs; ++i) node.inputs.push_back(ValueId{i});
    for (int i = 0; i < outputs; ++i) node.outputs.push_back(ValueId{inputs + i});
    for (int i : absent) node.inputs[i] = ValueId{};
    std::vector<std::pair<int, int>> pairs;
    for (const Alias& alias : aliases_of(node)) pairs.emplace_back(alias.output, alias.input);
    return pairs;
  };
  using Pairs = std::vector<std::pair<int, int>>;
  EXPECT_EQ(aliases("", {}, 12, 6), (Pairs{{0, 0}, {1, 2}, {2, 3}, {3, 4}, {4, 6}, {5, 7}}));
  // With a weight, which is overwritten only by the second update.
  EXPECT_EQ(aliases("bfloat16", {4}, 14, 8),
            (Pairs{{0, 0}, {1, 2}, {2, 3}, {4, 5}, {5, 7}, {6, 8}, {7, 9}}));
}

/// The text of the node's error.
std::string error_of(const std::string& op, const std::vector<TensorType>& types,
                     const Attributes& attributes) {
  std::vector<HostTensor> inputs;
  for (const TensorType& type : types) inputs.emplace_back(type);
  try {
    single_node(op, inputs, attributes, "layer4.conv");
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TensorType f32(Shape shape) { return {DType::float32, std::move(shape)}; }

Attributes conv(Ints strides, Ints pads, Ints dilations, std::int64_t group) {
  return {{"strides", strides}, {"pads", pads}, {"dilations", dilations}, {"group", group}};
}

void expect_error(const std::string& error, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(error.find(part), std::string::npos) << "'" << part << "' is not in: " << error;
  }
}

TEST(Errors, OfConv) {
  const TensorType x = f32({2, 3, 8, 8}), w = f32({4, 3, 3, 3});
  const Attributes good = conv({1, 1}, {0, 0, 0, 0}, {1, 1}, 1);
  EXPECT_EQ(error_of("Conv", {x, w}, good), "no error");
  expect_error(error_of("Conv", {x, f32({4, 5, 3, 3})}, good),
               {"layer4.conv", "5 input channels", "3"});
  expect_error(error_of("Conv", {x, f32({4, 3, 3})}, good),
               {"weight has the wrong rank", "[4, 3, 3]"});
  expect_error(error_of("Conv", {f32({3, 8}), w}, good), {"x has the wrong rank", "[3, 8]"});
  expect_error(error_of("Conv", {x, w, f32({3})}, good), {"bias", "[4]", "[3]"});
  expect_error(error_of("Conv", {x, w}, conv({1, 1}, {0, 0, 0, 0}, {1, 1}, 3)), {"groups"});
  expect_error(error_of("Conv", {x, w}, conv({1, 1}, {0, 0, 0, 0}, {1, 1}, 0)), {"group", "0"});
  expect_error(error_of("Conv", {x, w}, conv({0, 1}, {0, 0, 0, 0}, {1, 1}, 1)),
               {"strides", "[0, 1]"});
  expect_error(error_of("Conv", {x, w}, conv({1, 1}, {0, 0}, {1, 1}, 1)), {"pads", "4 numbers"});
  expect_error(error_of("Conv", {x, w}, conv({1, 1}, {0, -1, 0, 0}, {1, 1}, 1)), {"pads", "-1"});
  expect_error(error_of("Conv", {x, w}, conv({1, 1}, {0, 0, 0, 0}, {1, 0}, 1)), {"dilations"});
  expect_error(error_of("Conv", {x, w}, conv({1, 1}, {0, 0, 0, 0}, {1, 4}, 1)),
               {"the kernel is larger than the padded input along axis 3", "9", "8"});
  expect_error(error_of("Conv", {{DType::int32, {2, 3, 8, 8}}, w}, good),
               {"floating point", "int32"});
}

TEST(Errors, OfPooling) {
  const auto pool = [](Ints kernel, Ints pads) {
    return Attributes{{"kernel_shape", kernel},
                      {"strides", Ints{1, 1}},
                      {"pads", pads},
                      {"dilations", Ints{1, 1}}};
  };
  const TensorType x = f32({1, 2, 4, 4});
  expect_error(error_of("MaxPool", {x}, pool({5, 1}, {0, 0, 0, 0})),
               {"larger than the padded input"});
  expect_error(error_of("MaxPool", {x}, pool({2, 2}, {2, 0, 0, 0})), {"wholly in the padding"});
  expect_error(error_of("AveragePool", {x}, pool({2}, {0, 0, 0, 0})),
               {"kernel_shape", "2 numbers"});
  expect_error(error_of("AveragePool", {x}, pool({2, 0}, {0, 0, 0, 0})), {"kernel_shape"});
}

TEST(Errors, OfTheOthers) {
  const TensorType x = f32({2, 3, 4}), three = f32({3});
  expect_error(error_of("BatchNormalization", {x, f32({4}), three, three, three}, {}),
               {"scale", "[3]", "[4]"});
  expect_error(
      error_of("BatchNormalizationTraining", {f32({0, 3}), three, three, three, three}, {}),
      {"x is empty"});
  expect_error(
      error_of("BatchNormalizationTraining", {x, three, three, three, three}, {{"momentum", 1.5}}),
      {"momentum", "1.5"});
  expect_error(error_of("LayerNormalization", {x, f32({3})}, {{"axis", 2}}),
               {"scale", "[4]", "[3]"});
  expect_error(error_of("Softmax", {x}, {{"axis", 3}}), {"axis", "3"});
  const TensorType labels{DType::int64, {2, 4}};
  expect_error(error_of("SoftmaxCrossEntropy", {x, {DType::int64, {2, 3}}}, {}),
               {"labels", "[2, 4]", "[2, 3]"});
  expect_error(error_of("SoftmaxCrossEntropy", {x, f32({2, 4})}, {}),
               {"labels", "int32 or int64", "float32"});
  expect_error(error_of("SoftmaxCrossEntropy", {x, labels}, {{"label_smoothing", 1.5}}),
               {"label_smoothing"});
  expect_error(error_of("Dropout", {x}, {{"ratio", 1.0}}), {"ratio", "0 <= ratio < 1"});
  expect_error(error_of("Dropout", {x}, {{"ratio", std::nan("")}}), {"ratio"});
  const TensorType q = f32({1, 2, 3, 4});
  expect_error(error_of("Attention", {q, f32({1, 2, 5, 3}), q}, {{"scale", 1.0}}),
               {"'k'", "[1, 2, 5, 4]"});
  expect_error(error_of("Attention", {q, q, q, f32({2, 2})}, {{"scale", 1.0}}),
               {"mask", "[1, 2, 3, 3]"});
}

TEST(Errors, OfUpdates) {
  const TensorType w = f32({3}), scalar = f32({}), step{DType::int64, {}}, skip{DType::boolean, {}};
  const std::vector<TensorType> sgd{w, w, w, scalar, step, scalar, skip};
  expect_error(error_of("SgdUpdate", sgd, {}),
               {"momentum_buffer", "no momentum_buffer with these settings"});
  expect_error(error_of("SgdUpdate", sgd, {{"momentum", 0.9}, {"dampening", 0.1}, {"nesterov", 1}}),
               {"nesterov"});
  expect_error(
      error_of("SgdUpdate", {w, f32({4}), w, scalar, step, scalar, skip}, {{"momentum", 0.9}}),
      {"grad", "[3]", "[4]"});
  const std::vector<TensorType> adam{w, w, w, w, scalar, step, scalar, skip};
  expect_error(error_of("AdamUpdate", adam, {{"beta1", 1.0}}), {"beta1"});
  expect_error(error_of("AdamUpdate", adam, {{"epsilon_form", std::string("keras")}}),
               {"epsilon_form", "keras"});
  expect_error(error_of("GroupedUpdate", adam, {{"op", std::string("AdamUpdate")}, {"count", 2}}),
               {"count"});
  expect_error(error_of("GroupedUpdate", adam, {{"op", std::string("LarsUpdate")}, {"count", 1}}),
               {"LarsUpdate"});
}

}  // namespace
}  // namespace tandem::testing
