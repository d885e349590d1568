// Layer and batch normalisation on a GPU against the double reference.
#include <cmath>

#include "tests/cuda/reductions_check.h"

namespace tandem::testing {
namespace {

ReducedInput statistic(HostTensor numbers) {
  return {.numbers = std::move(numbers), .layout = {}, .statistic = true};
}

void check_layer(const Shape& shape, std::int64_t axis, double low = -1, double high = 3) {
  const Shape affine(shape.begin() + axis, shape.end());
  Shape statistics = shape;
  std::fill(statistics.begin() + axis, statistics.end(), 1);
  const ReducedInput x{some_numbers(shape, 1, low, high)}, scale{some_numbers(affine, 2)},
      bias{some_numbers(affine, 3)};
  const Attributes attributes{{"axis", axis}, {"epsilon", 1e-2}};
  check_reduction(
      {.op = "LayerNormalization", .inputs = {x, scale, bias}, .attributes = attributes});
  check_reduction({.op = "LayerNormalization",
                   .inputs = {x, scale, no_input()},
                   .attributes = attributes,
                   .only_first_output = true});
  // Numbers of one sign, so that sums over many rows are not small compared with their terms.
  const ReducedInput dy{some_numbers(shape, 6, 0, 1)};
  const ReducedInput mean = statistic(some_numbers(statistics, 4, low - 1, low - 0.5)),
                     rstd = statistic(some_numbers(statistics, 5, 0.5, 1));
  for (const bool only_dx : {false, true}) {
    check_reduction({.op = "LayerNormalizationGrad",
                     .inputs = {dy, x, scale, mean, rstd},
                     .attributes = {{"axis", axis}},
                     .tolerance = 3e-6,
                     .only_first_output = only_dx});
  }
}

TEST(CudaLayerNormalization, Rows) {
  for (const std::int64_t columns : {1, 10, 31, 33, 256, 300, 1000, 1024, 1025, 4096, 4100}) {
    for (const std::int64_t rows : {1, 5}) check_layer({rows, columns}, 1);
  }
  check_layer({2, 50257}, 1);
  check_layer({3000, 9}, 1);
  check_layer({2500, 64}, 1);
  check_layer({700, 520}, 1);
  check_layer({70, 4104}, 1);
}

TEST(CudaLayerNormalization, SeveralAxes) {
  check_layer({3, 5, 16, 2}, 2);
  check_layer({3, 5, 16, 2}, 1);
  check_layer({2, 3, 4}, 0);
  check_layer({0, 4}, 1);
}

// Only the sums are read, not dx.
TEST(CudaLayerNormalization, SumsAlone) {
  for (const Shape& shape : {Shape{500, 40}, Shape{90, 600}, Shape{20, 5000}}) {
    const Shape affine{shape[1]}, statistics{shape[0], 1};
    const std::vector<HostTensor> inputs{some_numbers(shape, 1), some_numbers(shape, 2),
                                         some_numbers(affine, 3), some_numbers(statistics, 4),
                                         some_numbers(statistics, 5, 0.5, 2)};
    const Graph graph =
        reduction_graph("LayerNormalizationGrad", inputs, {{"axis", std::int64_t{1}}});
    const Kernel* reference = choose_kernel(reference_list(), plain_request(graph, graph.nodes[0]));
    const auto expected = run_node(*reference, graph, graph.nodes[0], inputs);
    ReductionGpu gpu;
    KernelRequest request = plain_request(graph, graph.nodes[0], gpu.facts);
    request.outputs[0].present = false;
    const auto prepared = gpu.kernel_for(graph)->prepare(request);
    std::vector<const void*> in;
    for (const HostTensor& x : inputs) in.push_back(x.data());
    HostTensor dscale(TensorType{DType::float32, affine}), dbias(dscale.type());
    HostTensor workspace(
        TensorType{DType::uint8, {static_cast<std::int64_t>(prepared->workspace_bytes)}});
    const std::vector<void*> out{nullptr, dscale.data(), dbias.data()};
    const StepContext context;
    prepared->run({in.data(), out.data(), workspace.data(), &context, gpu.stream});
    gpu.runtime->synchronize(gpu.stream);
    EXPECT_EQ(compare(dscale, expected[1], 1e-5), "");
    EXPECT_EQ(compare(dbias, expected[2], 1e-5), "");
    EXPECT_EQ(gpu.problem(), "");
  }
}

// The mean is far above the deviation, and the first element is far from the mean.
TEST(CudaLayerNormalization, LargeMean) {
  for (const std::int64_t columns : {200, 900, 20000}) {
    check_reduction({.op = "LayerNormalization",
                     .inputs = {{some_numbers({9, columns}, 1, 999, 1001)},
                                {some_numbers({columns}, 2)},
                                no_input()},
                     .attributes = {{"axis", std::int64_t{1}}, {"epsilon", 1e-5}},
                     .tolerance = 3e-4,
                     .types = {DType::float32}});
  }
}

struct Maps {
  Shape shape;
  bool last = false;
};

void check_batch(const Maps& maps) {
  const Shape channels{maps.shape[1]};
  std::optional<Layout> layout;
  if (maps.last) layout = channels_last(maps.shape);
  const ReducedInput x{some_numbers(maps.shape, 1, 1, 3), layout},
      dy{some_numbers(maps.shape, 6, 0, 1), layout};
  const ReducedInput scale{some_numbers(channels, 2)}, bias{some_numbers(channels, 3)};
  const ReducedInput mean{some_numbers(channels, 4)}, var{some_numbers(channels, 5, 0.5, 2)};
  check_reduction({.op = "BatchNormalization",
                   .inputs = {x, scale, bias, mean, var},
                   .attributes = {{"epsilon", 1e-5}}});
  for (const bool only_first : {false, true}) {
    check_reduction({.op = "BatchNormalizationTraining",
                     .inputs = {x, scale, bias, mean, var},
                     .attributes = {{"epsilon", 1e-3}, {"momentum", 0.9}},
                     .only_first_output = only_first});
    check_reduction({.op = "BatchNormalizationGrad",
                     .inputs = {dy, x, scale, statistic(mean.numbers), statistic(var.numbers)},
                     .attributes = {{"epsilon", 1e-5}},
                     .tolerance = 1e-5,
                     .only_first_output = only_first});
  }
}

TEST(CudaBatchNormalization, BothLayouts) {
  for (const Shape& shape : std::vector<Shape>{{8, 64, 9, 7},
                                               {3, 5, 4, 4},
                                               {32, 512, 1, 1},
                                               {64, 33},
                                               {4, 17, 50},
                                               {2, 3, 33, 40},
                                               {1, 1, 1},
                                               {700, 8},
                                               {9, 1000},
                                               {2, 3, 2, 4, 4},
                                               {40, 2, 16, 16},
                                               {5, 96, 3, 3}}) {
    check_batch({shape});
    if (shape.size() > 2) check_batch({shape, true});
  }
}

// Statistics and parameters stay float32 even if x is not.
TEST(CudaBatchNormalization, ParametersOfTheirOwnType) {
  for (const bool last : {false, true}) {
    const Shape shape{3, 16, 5, 4}, channels{16};
    std::optional<Layout> layout;
    if (last) layout = channels_last(shape);
    const std::vector<ReducedInput> inputs{{some_numbers(shape, 1, 1, 3), layout},
                                           statistic(some_numbers(channels, 2)),
                                           statistic(some_numbers(channels, 3)),
                                           statistic(some_numbers(channels, 4)),
                                           statistic(some_numbers(channels, 5, 0.5, 2))};
    check_reduction(
        {.op = "BatchNormalization", .inputs = inputs, .attributes = {{"epsilon", 1e-5}}});
    check_reduction({.op = "BatchNormalizationTraining",
                     .inputs = inputs,
                     .attributes = {{"epsilon", 1e-3}, {"momentum", 0.9}}});
  }
}

// The variance must stay precise if the mean or the first element is far away.
TEST(CudaBatchNormalization, LargeMeanAndOutliers) {
  const Shape shape{16, 8, 20, 20};
  HostTensor x = some_numbers(shape, 1, 99, 101);
  for (int c = 0; c < 8; ++c) x.as<float>()[400 * c] = c % 2 == 0 ? 100.0f : 600.0f;
  for (const Layout& layout : {row_major(shape), channels_last(shape)}) {
    check_reduction({.op = "BatchNormalizationTraining",
                     .inputs = {{x, layout},
                                {some_numbers({8}, 2)},
                                {some_numbers({8}, 3)},
                                {some_numbers({8}, 4)},
                                {some_numbers({8}, 5)}},
                     .attributes = {{"epsilon", 1e-5}, {"momentum", 0.9}},
                     .tolerance = 3e-5,
                     .types = {DType::float32}});
  }
}

// Without any image the sums are 0.
TEST(CudaBatchNormalization, GradientOfNothing) {
  check_reduction({.op = "BatchNormalizationGrad",
                   .inputs = {{some_numbers({0, 5, 2, 2})},
                              {some_numbers({0, 5, 2, 2})},
                              {some_numbers({5})},
                              statistic(some_numbers({5})),
                              statistic(some_numbers({5}))},
                   .attributes = {{"epsilon", 1e-5}}});
}

}  // namespace
}  // namespace tandem::testing
