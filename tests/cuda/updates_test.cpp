// Optimizer updates on a GPU, compared with the double reference over several steps; clipping.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>

#include "engine/graph/half.h"
#include "engine/operators/update_kind.h"
#include "tests/cuda/support/row_gpu.h"
#include "tests/harness/update_settings.h"

namespace tandem::testing {
namespace {

using Kind = UpdateSettings;

std::vector<Kind> kinds() {
  std::vector<Kind> all = settings_to_try();
  std::erase_if(all, [](const Kind& kind) {
    const UpdateKind& known = *find_update_kind(kind.op);
    return known.whole_row || known.is_factored();  // factored ones have no kernel here
  });
  return all;
}
Kind kind_of(const std::string& op, const Attributes& settings) {
  Kind kind{op, op, {}};
  for (const AttributeSpec& spec : find_update_kind(op)->attributes)
    kind.settings.set(spec.name, spec.value);
  for (const auto& [name, value] : settings.entries()) kind.settings.set(name, value);
  return kind;
}

/// Master and states of one parameter; states that the settings do not need are left out. The mean
/// of squares is larger than the square of the mean.
Tensors parameter(const Kind& kind, const Shape& shape, unsigned seed) {
  Tensors tensors{uniform(shape, seed)};
  const UpdateKind& known = *find_update_kind(kind.op);
  for (std::size_t k = 0; k < known.states.size(); ++k) {
    tensors.push_back(known.keeps_state(k, kind.settings, shape)
                          ? uniform(shape, seed + 1 + static_cast<unsigned>(k), k == 0 ? 0.5 : 0.1,
                                    k == 0 ? 1 : 0.5)
                          : no_tensor());
  }
  return tensors;
}
HostTensor widened(const HostTensor& tensor) {
  return is_given(tensor) ? tensor.converted(DType::float64) : tensor;
}

/// Inputs of an update of several parameters: (master, grad, states...) of each, then the scalars.
Tensors inputs_of(const std::vector<Tensors>& parameters, const Tensors& gradients,
                  const Tensors& step, bool widen) {
  Tensors inputs;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto tensor = [&](std::size_t k) {
      return widen ? widened(parameters[i][k]) : parameters[i][k];
    };
    inputs.push_back(tensor(0));
    inputs.push_back(gradients[i]);
    for (std::size_t k = 1; k < parameters[i].size(); ++k) inputs.push_back(tensor(k));
  }
  inputs.insert(inputs.end(), step.begin(), step.end());
  return inputs;
}

std::uint16_t bits_in(float x, DType dtype) {
  return dtype == DType::bfloat16 ? float_to_bfloat16(x) : float_to_half(x);
}

void expect_weight(const HostTensor& weight, const HostTensor& master, DType dtype) {
  ASSERT_EQ(weight.type(), (TensorType{dtype, master.shape()}));
  const auto* bits = static_cast<const std::uint16_t*>(weight.data());
  for (std::size_t i = 0; i < master.as<float>().size(); ++i) {
    ASSERT_EQ(bits[i], bits_in(master.as<float>()[i], dtype)) << "element " << i;
  }
}

// FTRL multiplies the rounding of two square roots of about 1, 1e-7 in all, by 1 / lr = 20.
constexpr double tolerance = 3e-6;

class Updates : public ::testing::TestWithParam<Kind> {};

TEST_P(Updates, FollowTheReferenceForSeveralSteps) {
  const Kind& kind = GetParam();
  RowGpu gpu({.late = true});
  const std::vector<std::pair<DType, DType>> types{{DType::float32, DType::float32},
                                                   {DType::float32, DType::bfloat16},
                                                   {DType::bfloat16, DType::bfloat16},
                                                   {DType::float16, DType::float16}};
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{4, 5}, Shape{2, 2049}, Shape{0}}) {
    for (const auto& [gradients, weights] : types) {  // float32: no 16-bit weights
      SCOPED_TRACE(to_string(shape) + " " + std::string(name_of(gradients)));
      Attributes settings = kind.settings;
      const bool weighted = weights != DType::float32;
      if (weighted) settings.set("weight", std::string(name_of(weights)));
      Tensors own = parameter(kind, shape, 3), exact = own;
      for (HostTensor& tensor : exact) tensor = widened(tensor);
      for (int step = 1; step <= 4; ++step) {
        const HostTensor grad = uniform(shape, static_cast<unsigned>(10 + step), -1, 1, gradients);
        const Tensors scalar = step_scalars(0.05f, step, 0.5f, false);
        Tensors inputs = inputs_of({own}, {grad}, scalar, false);
        if (weighted) inputs.push_back(HostTensor(TensorType{weights, shape}));
        const Tensors results = gpu.run(kind.op, inputs, settings);
        const Tensors expected =
            on_reference(kind.op, inputs_of({exact}, {grad}, scalar, true), kind.settings);
        for (std::size_t k = 0; k < own.size(); ++k) {
          if (!is_given(own[k])) continue;
          EXPECT_EQ(compare(results[k], expected[k], tolerance), "")
              << "result " << k << " of " << step;
          own[k] = results[k];
          exact[k] = expected[k];
        }
        if (weighted) expect_weight(results.back(), results[0], weights);
      }
    }
  }
}

TEST_P(Updates, OfManyParametersAreAFewLaunches) {
  const Kind& kind = GetParam();
  RowGpu gpu;
  std::vector<Tensors> parameters, exact;
  Tensors gradients;
  for (std::int64_t i = 0; i < 150; ++i) {
    const Shape shape{i == 7 || i == 149 ? 0 : i * 37 % 91 + (i % 50 == 3 ? 9000 : 1)};
    parameters.push_back(parameter(kind, shape, static_cast<unsigned>(i)));
    gradients.push_back(uniform(shape, static_cast<unsigned>(i) + 900));
  }
  const Tensors scalar = step_scalars(0.05f, 3, 0.5f, false);
  Attributes settings = kind.settings;
  settings.set("op", kind.op);
  settings.set("count", std::int64_t{150});
  gpu.runtime->clear_calls();
  const Tensors results =
      gpu.run("GroupedUpdate", inputs_of(parameters, gradients, scalar, false), settings);
  EXPECT_EQ(gpu.launches(), find_update_kind(kind.op)->whole_tensor ? 9 : 3);
  const Tensors expected =
      on_reference("GroupedUpdate", inputs_of(parameters, gradients, scalar, true), settings);
  ASSERT_EQ(results.size(), expected.size());
  for (std::size_t k = 0; k < results.size(); ++k) {
    EXPECT_EQ(compare(results[k], expected[k], tolerance), "") << "result " << k;
  }
}

TEST_P(Updates, ThatAreSkippedChangeNothingButWeights) {
  const Kind& kind = GetParam();
  RowGpu gpu;
  for (const std::int64_t size : {1, 4, 103}) {
    const Tensors own = parameter(kind, {size}, 5);
    Attributes settings = kind.settings;
    settings.set("weight", std::string("bfloat16"));
    Tensors inputs = inputs_of({own}, {uniform({size}, 6)}, step_scalars(0.1f, 2, 1, true), false);
    inputs.push_back(HostTensor(TensorType{DType::bfloat16, {size}}));
    const Tensors results = gpu.run(kind.op, inputs, settings);
    for (std::size_t k = 0; k < own.size(); ++k)
      EXPECT_TRUE(!is_given(own[k]) || same_bits(results[k], own[k]));
    expect_weight(results.back(), own[0], DType::bfloat16);
  }
}

// No address is a multiple of four elements' size.
TEST_P(Updates, TakeOperandsThatBeginAnywhere) {
  const Kind& kind = GetParam();
  RowGpu gpu;
  const Tensors own = parameter(kind, {1030}, 7);
  const Tensors scalar = step_scalars(0.05f, 3, 0.5f, false);
  const HostTensor grad = uniform({1030}, 8);
  const Tensors inputs = inputs_of({own}, {grad}, scalar, false);
  std::vector<Layout> layouts;
  for (const HostTensor& input : inputs) {
    Layout layout = is_given(input) ? row_major(input.shape()) : Layout{};
    if (input.shape().size() == 1) layout.offset = 1;
    layouts.push_back(layout);
  }
  const Tensors results = gpu.run(kind.op, inputs, kind.settings, layouts);
  const Tensors expected =
      on_reference(kind.op, inputs_of({own}, {grad}, scalar, true), kind.settings);
  for (std::size_t k = 0; k < own.size(); ++k) {
    if (!is_given(own[k])) continue;
    EXPECT_EQ(compare(results[k], expected[k], tolerance), "") << "result " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Updates, ::testing::ValuesIn(kinds()),
                         [](const auto& info) { return info.param.name; });

// A norm is computed per tensor, in the tensor's own chunks: neither the grouping nor the operands'
// addresses change a bit.
TEST(UpdatesOnGpus, NormsDependOnTheTensorAlone) {
  RowGpu gpu;
  const Kind kind = kind_of("LambUpdate", {{"weight_decay", 0.1}});
  std::vector<Tensors> parameters;
  Tensors gradients;
  for (const std::int64_t size : {5, 4096, 4097, 0, 30001, 1}) {
    parameters.push_back(parameter(kind, {size}, static_cast<unsigned>(size)));
    gradients.push_back(uniform({size}, static_cast<unsigned>(size) + 7));
  }
  const Tensors scalar = step_scalars(0.05f, 3, 0.5f, false);
  Attributes settings = kind.settings;
  settings.set("op", kind.op);
  settings.set("count", static_cast<std::int64_t>(parameters.size()));
  const Tensors together =
      gpu.run("GroupedUpdate", inputs_of(parameters, gradients, scalar, false), settings);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    SCOPED_TRACE(to_string(gradients[p].shape()));
    const Tensors inputs = inputs_of({parameters[p]}, {gradients[p]}, scalar, false);
    const Tensors alone = gpu.run(kind.op, inputs, kind.settings);
    if (parameters[p][0].bytes() == 0) continue;
    std::vector<Layout> layouts;
    for (const HostTensor& input : inputs) {
      layouts.push_back(row_major(input.shape()));
      if (input.shape().size() == 1) layouts.back().offset = 1;
    }
    const Tensors shifted = gpu.run(kind.op, inputs, kind.settings, layouts);
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_TRUE(same_bits(together[3 * p + k], alone[k])) << "result " << k;
      EXPECT_TRUE(same_bits(shifted[k], alone[k])) << "result " << k;
    }
  }
}

TEST(UpdatesOnGpus, KeepAParameterWhereTheRateIsZeroAndFtrlDividesByIt) {
  RowGpu gpu;
  const Kind kind = kind_of("FtrlUpdate", {{"l1", 0.02}});
  const Tensors own = parameter(kind, {70}, 5);
  const Tensors results =
      gpu.run(kind.op, inputs_of({own}, {uniform({70}, 6)}, step_scalars(0, 2, 1, false), false),
              kind.settings);
  for (std::size_t k = 0; k < own.size(); ++k) EXPECT_TRUE(same_bits(results[k], own[k]));
}

// One capture is replayed: the step's scalars lie in the GPU's memory, which the host cannot read,
// and the launch is the same each time.
TEST(UpdatesOnGpus, ReadTheirScalarsOnTheGpu) {
  RowGpu gpu({.late = true});
  const Kind kind = kind_of("AdamUpdate", {{"weight_decay", 0.1}});
  const Attributes& settings = kind.settings;
  const std::int64_t size = 1001;
  Tensors own = parameter(kind, {size}, 4), exact;
  for (const HostTensor& tensor : own) exact.push_back(tensor.converted(DType::float64));
  const HostTensor grad = uniform({size}, 9);
  Tensors inputs = inputs_of({own}, {grad}, step_scalars(1, 1, 1, false), false);

  std::vector<void*> memory;
  std::vector<const void*> addresses;
  for (const HostTensor& input : inputs) {
    void* to = nullptr;
    ASSERT_EQ(gpu.runtime->allocate(to, input.bytes()), cudaSuccess);
    ASSERT_EQ(gpu.runtime->copy_now(to, input.data(), input.bytes()), cudaSuccess);
    memory.push_back(to);
    addresses.push_back(to);
  }
  const std::vector<void*> outputs{memory[0], memory[2], memory[3], nullptr};
  const Graph graph = node_of(kind.op, inputs, settings);
  KernelRequest request = plain_request(graph, graph.nodes[0], gpu.facts);
  const Kernel* kernel = choose_kernel(gpu.kernels, request);
  ASSERT_NE(kernel, nullptr);
  const auto prepared = kernel->prepare(request);

  const StepContext context;
  ASSERT_EQ(gpu.runtime->begin_capture(gpu.stream), cudaSuccess);
  prepared->run({addresses.data(), outputs.data(), nullptr, &context, gpu.stream});
  cudaGraphExec_t captured = nullptr;
  ASSERT_EQ(gpu.runtime->end_capture(gpu.stream, captured), cudaSuccess);
  for (int step = 1; step <= 5; ++step) {
    const Tensors scalar = step_scalars(0.1f / static_cast<float>(step), step,
                                        0.25f * static_cast<float>(step), step == 4);
    for (std::size_t k = 0; k < 4; ++k) {
      ASSERT_EQ(gpu.runtime->copy_now(memory[4 + k], scalar[k].data(), scalar[k].bytes()),
                cudaSuccess);
    }
    ASSERT_EQ(gpu.runtime->launch_graph(captured, gpu.stream), cudaSuccess);
    ASSERT_EQ(gpu.runtime->synchronize(gpu.stream), cudaSuccess);
    exact = on_reference(kind.op, inputs_of({exact}, {grad}, scalar, true), settings);
    exact.resize(own.size());
    for (std::size_t k = 0; k < own.size(); ++k) {
      ASSERT_EQ(gpu.runtime->copy_now(own[k].data(), outputs[k], own[k].bytes()), cudaSuccess);
      EXPECT_EQ(compare(own[k], exact[k], 1e-6), "") << "result " << k << " of step " << step;
    }
  }
  EXPECT_EQ(gpu.runtime->destroy_graph(captured), cudaSuccess);
  for (void* own_memory : memory) gpu.runtime->release(own_memory);
  EXPECT_EQ(gpu.problem(), "");
}

TEST(UpdatesOnGpus, SayWhatTheyDoNotTake) {
  RowGpu gpu;
  const Kind adam = kind_of("AdamUpdate", {});
  Tensors inputs =
      inputs_of({parameter(adam, {4}, 1)}, {uniform({4}, 2)}, step_scalars(1, 1, 1, false), true);
  EXPECT_EQ(gpu.refusal("AdamUpdate", inputs), "cuda.AdamUpdate: element type float64");
  inputs = inputs_of({parameter(adam, {4}, 1)}, {uniform({4}, 2).converted(DType::float64)},
                     step_scalars(1, 1, 1, false), false);
  EXPECT_EQ(gpu.refusal("AdamUpdate", inputs), "cuda.AdamUpdate: a gradient of float64");
  EXPECT_EQ(gpu.refusal("SumOfSquares", {uniform({4}, 2).converted(DType::float64)}),
            "cuda.sum_of_squares: element type float64");
}

TEST(Clipping, SumsSquaresInTwoStages) {
  RowGpu gpu;
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    for (const std::int64_t size : {0, 1, 5, 1024, 16384, 16385, 300007}) {
      SCOPED_TRACE(std::string(name_of(dtype)) + " " + std::to_string(size));
      const HostTensor x = uniform({size}, 3, -2, 2, dtype);
      double expected = 0;
      for (std::int64_t i = 0; i < size; ++i) expected += x.number(i) * x.number(i);
      gpu.runtime->clear_calls();
      const double sum = gpu.run("SumOfSquares", {x})[0].number(0);
      EXPECT_NEAR(sum, expected, 1e-6 * expected);
      EXPECT_EQ(gpu.launches(), size <= 16384 ? 1 : 2);
      Layout shifted = row_major(x.shape());
      shifted.offset = 1;
      EXPECT_NEAR(gpu.run("SumOfSquares", {x}, {}, {shifted})[0].number(0), expected,
                  1e-6 * expected);
    }
  }
  HostTensor broken = uniform({40000}, 3);
  broken.as<float>()[39999] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(gpu.run("SumOfSquares", {broken})[0].number(0)));
  broken.as<float>()[39999] = -std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isinf(gpu.run("SumOfSquares", {broken})[0].number(0)));
}

TEST(Clipping, ScalesByTheNormOfAll) {
  RowGpu gpu;
  for (const std::size_t count : {1, 2, 100, 256, 257, 700}) {
    SCOPED_TRACE(count);
    Tensors sums;
    for (std::size_t i = 0; i < count; ++i) sums.push_back(number_of(0.25f + 0.01f * float(i % 7)));
    for (const double max_norm : {0.0, 0.5, 1e6}) {
      const Attributes settings{{"max_norm", max_norm}};
      const Tensors results = gpu.run("ClipScale", sums, settings);
      const Tensors expected = on_reference("ClipScale", sums, settings);
      for (std::size_t k = 0; k < 2; ++k) EXPECT_EQ(compare(results[k], expected[k], 1e-6), "");
    }
  }
  const Tensors broken{number_of(1.0f), number_of(std::numeric_limits<float>::quiet_NaN())};
  const Tensors results = gpu.run("ClipScale", broken, {{"max_norm", 1.0}});
  EXPECT_TRUE(std::isnan(results[0].number(0)));
  EXPECT_TRUE(std::isnan(results[1].number(0)));
}

TEST(LossScaleOnGpus, IsThatOfTheReference) {
  RowGpu gpu;
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::size_t count : {1, 2, 256, 257, 700}) {
    for (const float last : {0.25f, infinity, nan}) {
      for (const std::int64_t good : {0, 4}) {
        SCOPED_TRACE(std::to_string(count) + " sums, the last " + std::to_string(last) + ", " +
                     std::to_string(good) + " good steps");
        Tensors inputs{number_of(1024.0f), number_of(good), number_of(std::int64_t{3}),
                       number_of(std::int64_t{9})};
        for (std::size_t i = 0; i + 1 < count; ++i)
          inputs.push_back(number_of(0.25f + 0.01f * float(i % 7)));
        inputs.push_back(number_of(last));
        const Attributes settings{{"growth_interval", std::int64_t{5}}, {"max_norm", 1e-3}};
        const Tensors results = gpu.run("LossScale", inputs, settings);
        const Tensors expected = on_reference("LossScale", inputs, settings);
        const std::size_t all = std::isfinite(last) ? 7 : 6;  // then a norm that is not finite
        for (std::size_t k = 0; k < all; ++k) {
          if (k == 4)
            EXPECT_EQ(results[k].as<bool>()[0], expected[k].as<bool>()[0]);
          else
            EXPECT_EQ(compare(results[k], expected[k], 1e-6), "") << k;
        }
        EXPECT_EQ(results[4].as<bool>()[0], !std::isfinite(last));
        EXPECT_EQ(std::isfinite(results[6].number(0)), std::isfinite(last));
      }
    }
  }
}

TEST(Clipping, AccumulatesGradients) {
  RowGpu gpu;
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    for (const std::int64_t size : {0, 1, 6, 5000}) {
      const HostTensor sum = uniform({size}, 1), grad = uniform({size}, 2, -1, 1, dtype);
      for (const std::int64_t first : {0, 1}) {
        const HostTensor result = gpu.run("Accumulate", {sum, grad}, {{"first", first}})[0];
        for (std::int64_t i = 0; i < size; ++i) {
          const float before = first != 0 ? 0.0f : sum.as<float>()[static_cast<std::size_t>(i)];
          ASSERT_EQ(result.as<float>()[static_cast<std::size_t>(i)],
                    before + static_cast<float>(grad.number(i)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace tandem::testing
