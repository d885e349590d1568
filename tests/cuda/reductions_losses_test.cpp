// Losses over labels and dropout on a GPU against the double reference.
#include <cmath>
#include <limits>

#include "kernels/shared/philox.h"
#include "tests/cuda/reductions_check.h"

namespace tandem::testing {
namespace {

Shape without_classes(Shape scores) {
  scores.erase(scores.begin() + 1);
  return scores;
}

struct LossCase {
  Shape scores;  // [N, C, d...]
  DType labels = DType::int64;
  double smoothing = 0;
  bool weighted = false;
  bool last = false;  // scores are channels-last
};

void check_losses(const LossCase& c) {
  const Shape marks = without_classes(c.scores);
  std::optional<Layout> layout;
  if (c.last) layout = channels_last(c.scores);
  const ReducedInput logits{some_numbers(c.scores, 1, -4, 4), layout};
  const ReducedInput labels{some_integers(marks, c.labels, 0, c.scores[1])};
  // Some weights are 0; their labels do not count.
  const ReducedInput weights =
      c.weighted ? ReducedInput{some_integers(marks, DType::float32, 0, 3, 9)} : no_input();
  const ReducedInput dlosses{some_numbers(marks, 5)};
  // Near the log-sum-exp of the logits, so that a slope is a probability.
  HostTensor sums = some_numbers(marks, 6, 0, 0.5);
  for (float& x : sums.as<float>())
    x += static_cast<float>(std::log(static_cast<double>(c.scores[1]))) + 1.7f;
  const Attributes attributes{{"label_smoothing", c.smoothing}};
  check_reduction(
      {.op = "SoftmaxCrossEntropy", .inputs = {logits, labels, weights}, .attributes = attributes});
  check_reduction(
      {.op = "SoftmaxCrossEntropyGrad",
       .inputs =
           {dlosses, logits, labels, weights, {.numbers = sums, .layout = {}, .statistic = true}},
       .attributes = attributes});
  check_reduction({.op = "SoftmaxCrossEntropyWithGrad",
                   .inputs = {dlosses, logits, labels, weights},
                   .attributes = attributes});
  check_reduction({.op = "NegativeLogLikelihood", .inputs = {logits, labels, weights}});
  check_reduction({.op = "NegativeLogLikelihoodGrad",
                   .inputs = {dlosses, labels, weights},
                   .attributes = {{"shape", c.scores}}});
}

TEST(CudaLosses, Rows) {
  for (const std::int64_t classes : {1, 2, 31, 33, 256, 1000, 1025, 50257}) {
    check_losses({.scores = {5, classes}});
    check_losses({.scores = {5, classes}, .smoothing = 0.1, .weighted = true});
  }
  check_losses({.scores = {1, 1000}, .labels = DType::int32});
  check_losses({.scores = {700, 10}, .labels = DType::int32, .smoothing = 0.25, .weighted = true});
  check_losses({.scores = {0, 4}});
}

TEST(CudaLosses, Maps) {
  for (const bool last : {false, true}) {
    check_losses({.scores = {2, 21, 9, 7}, .weighted = true, .last = last});
    check_losses({.scores = {3, 5, 40}, .labels = DType::int32, .smoothing = 0.1, .last = last});
    check_losses({.scores = {2, 1, 4}, .last = last});
    check_losses({.scores = {2, 300, 33}, .smoothing = 0.1, .weighted = true, .last = last});
  }
}

TEST(CudaLosses, OneOutputAlone) {
  for (const Shape& scores : {Shape{5, 300}, Shape{2, 7, 9}}) {
    check_reduction({.op = "SoftmaxCrossEntropy",
                     .inputs = {{some_numbers(scores)},
                                {some_integers(without_classes(scores), DType::int64, 0, 7)},
                                no_input()},
                     .attributes = {{"label_smoothing", 0.0}},
                     .only_first_output = true});
    check_reduction({.op = "SoftmaxCrossEntropyWithGrad",
                     .inputs = {{some_numbers(without_classes(scores), 5)},
                                {some_numbers(scores)},
                                {some_integers(without_classes(scores), DType::int64, 0, 7)},
                                no_input()},
                     .attributes = {{"label_smoothing", 0.0}},
                     .only_first_output = true});
  }
}

// Lowering replaces the two nodes by one, which must not change any bit: for rows that fit into a
// team's registers, longer rows and lines, in accesses of one element and of 16 bytes.
TEST(CudaLosses, LossesAndGradientInOneHaveTheSameBits) {
  const auto bits = [](const HostTensor& x) {
    return std::string(static_cast<const char*>(x.data()), x.bytes());
  };
  for (const Shape& scores : {Shape{5, 31}, Shape{5, 256}, Shape{40, 1000}, Shape{5, 1025},
                              Shape{3, 20000}, Shape{700, 10}, Shape{2, 300, 33}}) {
    const Shape marks = without_classes(scores);
    for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
      for (const double smoothing : {0.0, 0.1}) {
        SCOPED_TRACE(to_string(scores) + " " + std::string(name_of(dtype)));
        const HostTensor logits = some_numbers(scores, 1, -4, 4).converted(dtype);
        const HostTensor labels = some_integers(marks, DType::int64, 0, scores[1]);
        const HostTensor weights = some_integers(marks, DType::float32, 0, 3, 9);
        const HostTensor dlosses = some_numbers(marks, 5).converted(dtype);
        const auto run = [&](const std::string& op, const std::vector<HostTensor>& inputs) {
          ReductionGpu gpu;
          const Graph graph = reduction_graph(op, inputs, {{"label_smoothing", smoothing}});
          const auto results =
              run_node(*gpu.kernel_for(graph), graph, graph.nodes[0], inputs, gpu.run_options());
          EXPECT_EQ(gpu.problem(), "");
          return results;
        };
        const auto losses = run("SoftmaxCrossEntropy", {logits, labels, weights});
        const auto gradient =
            run("SoftmaxCrossEntropyGrad", {dlosses, logits, labels, weights, losses[1]});
        const auto both = run("SoftmaxCrossEntropyWithGrad", {dlosses, logits, labels, weights});
        EXPECT_EQ(bits(both[0]) == bits(losses[0]), true);
        EXPECT_EQ(bits(both[1]) == bits(losses[1]), true);
        EXPECT_EQ(bits(both[2]) == bits(gradient[0]), true);
      }
    }
  }
}

// exp of the logits overflows, and some classes are excluded.
TEST(CudaLosses, LargeLogits) {
  for (const Shape& scores : {Shape{4, 20000}, Shape{4, 300}, Shape{2, 40, 2}}) {
    HostTensor logits = some_numbers(scores, 1, -900, 900);
    for (std::size_t i = 0; i < logits.as<float>().size(); i += 3)
      logits.as<float>()[i] = -std::numeric_limits<float>::infinity();
    logits.as<float>()[1] = 20000;
    check_reduction({.op = "SoftmaxCrossEntropy",
                     .inputs = {{logits},
                                {some_integers(without_classes(scores), DType::int64, 0, 30)},
                                no_input()},
                     .attributes = {{"label_smoothing", 0.0}}});
    check_reduction({.op = "SoftmaxCrossEntropyWithGrad",
                     .inputs = {{some_numbers(without_classes(scores), 5)},
                                {logits},
                                {some_integers(without_classes(scores), DType::int64, 0, 30)},
                                no_input()},
                     .attributes = {{"label_smoothing", 0.0}}});
  }
}

TEST(CudaLosses, LabelWeights) {
  for (const DType dtype : {DType::int32, DType::int64}) {
    const auto check = [&](const Shape& marks, const ReducedInput& weights, std::int64_t index,
                           std::int64_t ignore) {
      check_reduction(
          {.op = "LabelWeights",
           .inputs = {{some_integers(marks, dtype, 0, 65)}, weights},
           .attributes = {{"ignore_index", index}, {"ignore", ignore}, {"classes", 65}}});
    };
    for (const Shape& marks : {Shape{1}, Shape{3, 700}, Shape{0, 4}}) {
      check(marks, {some_numbers({65})}, 4, 1);
      check(marks, no_input(), 4, 1);
      check(marks, {some_numbers({65})}, 4, 0);
    }
  }
  check_reduction(
      {.op = "LabelWeights",
       .inputs = {{HostTensor::from<std::int64_t>({4}, {-100, 2, 0, -100})}, no_input()},
       .attributes = {{"ignore_index", std::int64_t{-100}},
                      {"ignore", std::int64_t{1}},
                      {"classes", std::int64_t{3}}}});
}

struct BadLabel {
  const char* name;
  std::string op;
  std::vector<HostTensor> inputs;
  Attributes attributes;
  std::int64_t offending;  // 0: none is reported
};

// As in the reference: the first bad label is reported, and the nearest class replaces it.
TEST(CudaLosses, BadLabels) {
  std::vector<BadLabel> cases;
  for (const auto& [labels, offending] :
       std::vector<std::pair<std::vector<std::int64_t>, std::int64_t>>{
           {{1, 9, 2, 0}, 9}, {{1, 2, -7, 0}, -7}, {{0, 1, 2, 33}, 0}}) {
    for (const DType dtype : {DType::int32, DType::int64}) {
      const HostTensor marks = HostTensor::from<std::int64_t>({4}, labels).converted(dtype);
      const HostTensor none;
      // The last label's weight is 0.
      const HostTensor weights = HostTensor::from<float>({4}, {1, 2, 3, 0});
      for (const std::int64_t classes : {3, 2000}) {
        const std::int64_t bad = classes == 3 || offending < 0 ? offending : 0;
        const HostTensor scores = some_numbers({4, classes}), dlosses = some_numbers({4}, 3);
        const Attributes smooth{{"label_smoothing", 0.1}};
        cases.push_back(
            {"cross entropy", "SoftmaxCrossEntropy", {scores, marks, weights}, smooth, bad});
        cases.push_back({"cross entropy gradient",
                         "SoftmaxCrossEntropyGrad",
                         {dlosses, scores, marks, weights, some_numbers({4}, 4, 1, 2)},
                         smooth,
                         bad});
        cases.push_back({"both in one",
                         "SoftmaxCrossEntropyWithGrad",
                         {dlosses, scores, marks, weights},
                         smooth,
                         bad});
        cases.push_back({"likelihood", "NegativeLogLikelihood", {scores, marks, weights}, {}, bad});
        cases.push_back({"likelihood gradient",
                         "NegativeLogLikelihoodGrad",
                         {dlosses, marks, weights},
                         {{"shape", Ints{4, classes}}},
                         bad});
      }
      cases.push_back({"label weights",
                       "LabelWeights",
                       {marks, some_numbers({40})},
                       {{"ignore_index", std::int64_t{33}},
                        {"ignore", std::int64_t{1}},
                        {"classes", std::int64_t{40}}},
                       offending < 0 ? offending : 0});
    }
  }
  // Losses of maps: [2, 2, 3].
  cases.push_back(
      {"maps",
       "SoftmaxCrossEntropy",
       {some_numbers({2, 2, 3}), HostTensor::from<std::int32_t>({2, 3}, {0, 1, 0, 1, 5, 1})},
       {{"label_smoothing", 0.0}},
       5});
  cases.push_back(
      {"maps' gradient",
       "NegativeLogLikelihoodGrad",
       {some_numbers({2, 3}), HostTensor::from<std::int32_t>({2, 3}, {0, 1, 0, 1, 5, 1})},
       {{"shape", Ints{2, 2, 3}}},
       5});
  for (const BadLabel& c : cases) {
    SCOPED_TRACE(std::string(c.name) + " " + to_string(c.inputs[0].type()));
    const Graph graph = reduction_graph(c.op, c.inputs, c.attributes);
    const Kernel* reference = choose_kernel(reference_list(), plain_request(graph, graph.nodes[0]));
    ErrorWord expected_error, error;
    RunOptions plain;
    plain.error = &expected_error;
    const auto expected = run_node(*reference, graph, graph.nodes[0], c.inputs, plain);
    ReductionGpu gpu;
    RunOptions options = gpu.run_options();
    options.error = &error;
    const auto results = run_node(*gpu.kernel_for(graph), graph, graph.nodes[0], c.inputs, options);
    for (std::size_t i = 0; i < results.size(); ++i)
      EXPECT_EQ(compare(results[i], expected[i], 2e-6), "") << "output " << i;
    EXPECT_EQ(error.packed.load(), expected_error.packed.load());
    EXPECT_EQ(error.value.load(), expected_error.value.load());
    EXPECT_EQ(error.value.load(), c.offending);
    EXPECT_EQ(gpu.problem(), "");
  }
}

std::vector<HostTensor> run_dropout(const KernelList& kernels, const HostTensor& x, double ratio,
                                    RunOptions options) {
  const Graph graph = reduction_graph("Dropout", {x}, {{"ratio", ratio}});
  const Kernel* kernel = choose_kernel(kernels, plain_request(graph, graph.nodes[0]));
  return run_node(*kernel, graph, graph.nodes[0], {x}, options);
}

TEST(CudaDropout, SameMaskAsTheReference) {
  for (const double ratio : {0.0, 0.1, 0.5, 0.97}) {
    for (const Shape& shape :
         {Shape{1}, Shape{3}, Shape{8}, Shape{1025}, Shape{4, 1024}, Shape{2, 6, 5, 7}, Shape{0}}) {
      std::vector<std::optional<Layout>> layouts{std::nullopt};
      if (shape.size() == 4) {
        layouts.push_back(channels_last(shape));
        layouts.push_back(permuted(shape, {3, 1, 0, 2}));
      }
      for (const auto& layout : layouts) {
        for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
          SCOPED_TRACE(to_string(shape) + " " + std::string(name_of(dtype)));
          const HostTensor x = some_numbers(shape, 1, 1, 2).converted(dtype);
          const auto expected = run_dropout(reference_list(), x, ratio, {});
          for (const int multiprocessors : {1, 132}) {
            ReductionGpu gpu(multiprocessors);
            RunOptions options = gpu.run_options();
            if (layout) options.input_layouts = {*layout};
            const auto results = run_dropout(gpu.kernels, x, ratio, options);
            EXPECT_EQ(compare(results[1], expected[1], 0), "");
            const double rounding = dtype == DType::float32   ? 1e-6
                                    : dtype == DType::float16 ? 1e-3
                                                              : 8e-3;
            EXPECT_EQ(compare(results[0], expected[0], rounding), "");
            EXPECT_EQ(gpu.problem(), "");
          }
        }
      }
    }
  }
}

// A mask depends on the element: an address that allows no packs gives the same mask.
TEST(CudaDropout, UnalignedOperandsAndOutputsThatNobodyReads) {
  const HostTensor x = some_numbers({64}, 1, 1, 2);
  const HostTensor expected = run_dropout(reference_list(), x, 0.5, {})[0];
  ReductionGpu gpu;
  RunOptions options = gpu.run_options();
  options.only_output = 0;
  EXPECT_EQ(compare(run_dropout(gpu.kernels, x, 0.5, options)[0], expected, 1e-6), "");
  Layout shifted = row_major({64});
  shifted.offset = 1;
  options.input_layouts = {shifted};
  EXPECT_EQ(compare(run_dropout(gpu.kernels, x, 0.5, options)[0], expected, 1e-6), "");
  EXPECT_EQ(gpu.problem(), "");
}

TEST(CudaDropout, Gradient) {
  for (const Shape& shape : {Shape{1}, Shape{33}, Shape{4, 1024}, Shape{2, 3, 5, 7}, Shape{0}}) {
    std::vector<std::optional<Layout>> layouts{std::nullopt};
    if (shape.size() == 4) layouts.push_back(channels_last(shape));
    for (const auto& layout : layouts) {
      check_reduction({.op = "DropoutGrad",
                       .inputs = {{some_numbers(shape), layout},
                                  {some_integers(shape, DType::boolean, 0, 2), layout}},
                       .attributes = {{"ratio", 0.25}},
                       .tolerance = 1e-6});
    }
  }
}

}  // namespace
}  // namespace tandem::testing
