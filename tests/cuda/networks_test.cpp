// Convolution, pooling and attention of a GPU against the double reference: every case on every
// kernel, type and layout, and additional shapes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/cuda/support/network_check.h"
#include "tests/cuda/support/odd_layouts.h"

namespace tandem::testing {
namespace {

constexpr DType network_types[] = {DType::float32, DType::float16, DType::bfloat16};

Layout last_channels(const Shape& shape) {
  return shape.size() >= 3 ? channels_last(shape) : row_major(shape);
}

constexpr NamedLayout network_layouts[] = {{"row-major", row_major},
                                           {"channels-last", last_channels},
                                           {"reversed order", reversed_order},
                                           {"sliced", sliced}};

bool is_network(const std::string& op) {
  return op.starts_with("Conv") || op.starts_with("MaxPool") || op.starts_with("AveragePool") ||
         op.starts_with("Attention");
}

/// Only cases whose inputs are all float32 run in other types.
bool has_types(const OperatorCase& c) {
  return std::all_of(c.inputs.begin(), c.inputs.end(),
                     [](const CaseInput& x) { return x.dtype == DType::float32; });
}

TEST(CudaNetworks, EveryCase) {
  NetworkGpu gpu;
  std::map<std::string, int> ran;
  for (const OperatorCase& c : all_cases()) {
    if (!is_network(c.op)) continue;
    for (const DType dtype : network_types) {
      if (!has_types(c) && dtype != DType::float32) continue;
      const Graph graph = graph_in(c, dtype);
      const Node& node = graph.nodes[0];
      for (const NamedLayout& variant : network_layouts) {
        SCOPED_TRACE(variant.name);
        NetworkCheck how{.dtype = dtype};
        for (const ValueId id : node.inputs)
          how.input_layouts.push_back(id ? variant.layout(graph.type(id).shape) : Layout{});
        for (const ValueId id : node.outputs)
          how.output_layouts.push_back(variant.layout(graph.type(id).shape));
        for (const std::string& name : check_node(gpu, c, how)) ++ran[name + " " + c.op];
        how.only_first_output = true;
        if (node.outputs.size() > 1) check_node(gpu, c, how);
      }
    }
  }
  for (const Kernel& kernel : gpu.kernels) {
    EXPECT_GT(ran[kernel.name + " " + kernel.op], 0) << kernel.name << " " << kernel.op;
  }
}

CaseInput any_of(Shape shape) { return {.shape = std::move(shape)}; }
CaseInput absent() { return {.absent = true}; }

Attributes windows(Ints kernel, Ints strides, Ints pads, Ints dilations) {
  Attributes attributes{{"strides", std::move(strides)},
                        {"pads", std::move(pads)},
                        {"dilations", std::move(dilations)}};
  if (!kernel.empty()) attributes.set("kernel_shape", std::move(kernel));
  return attributes;
}

// Channel counts that fill packs of 16 bytes, and counts that do not.
TEST(CudaNetworks, PoolingOfPacks) {
  NetworkGpu gpu;
  for (const std::int64_t channels : {8, 16, 24, 12, 4}) {
    for (const bool average : {false, true}) {
      Attributes attributes = windows({3, 2}, {2, 1}, {1, 0, 1, 1}, {1, 2});
      attributes.set("ceil_mode", std::int64_t{1});
      const Shape x{2, channels, 9, 6}, y{2, channels, 5, 5};
      for (const DType dtype : network_types) {
        NetworkCheck how{.dtype = dtype, .input_layouts = std::vector<Layout>(3, channels_last(y))};
        how.input_layouts[0] = channels_last(x);
        if (average) {
          attributes.set("count_include_pad", std::int64_t{1});
          check_node(gpu,
                     {.name = "packs",
                      .op = "AveragePool",
                      .inputs = {any_of(x)},
                      .attributes = attributes},
                     how);
          Attributes with_shape = attributes;
          with_shape.set("shape", x);
          how.input_layouts = {channels_last(y)};
          check_node(gpu,
                     {.name = "packs",
                      .op = "AveragePoolGrad",
                      .inputs = {any_of(y)},
                      .attributes = with_shape},
                     how);
          continue;
        }
        OperatorCase pool{
            .name = "packs",
            .op = "MaxPool",
            .inputs = {{.shape = x, .fill = CaseInput::Fill::integers, .low = -4, .high = 4}},
            .attributes = attributes};
        how.only_first_output = true;
        check_node(gpu, pool, how);
        how.only_first_output = false;
        check_node(gpu, pool, how);
        // Small integers are exact in every type, so y equals what the pooling finds.
        const Graph graph = graph_in(pool, DType::float64);
        const HostTensor values = rounded_inputs(pool, graph)[0];
        const HostTensor maxima = in_double(pool, graph, {values})[0];
        const auto of = [](const HostTensor& tensor, const Shape& shape) {
          CaseInput input{.shape = shape, .fill = CaseInput::Fill::values};
          for (double number : tensor.as<double>()) input.values.push_back(number);
          return input;
        };
        pool.op = "MaxPoolGrad";
        pool.inputs = {of(values, x), of(maxima, y), any_of(y)};
        check_node(gpu, pool, how);
      }
    }
  }
}

TEST(CudaNetworks, PoolingOfBytesAndNan) {
  NetworkGpu gpu;
  const Attributes attributes = [] {
    Attributes a = windows({2, 2}, {1, 1}, {0, 0, 0, 0}, {1, 1});
    return a;
  }();
  for (const DType dtype : {DType::int8, DType::uint8}) {
    for (const auto layout : {row_major, channels_last}) {
      const Shape x{1, 16, 4, 3};
      check_node(gpu,
                 {.name = "bytes",
                  .op = "MaxPool",
                  .inputs = {{.shape = x,
                              .dtype = dtype,
                              .fill = CaseInput::Fill::integers,
                              .low = dtype == DType::int8 ? -128.0 : 0.0,
                              .high = dtype == DType::int8 ? 128.0 : 256.0}},
                  .attributes = attributes},
                 {.input_layouts = {layout(x)}, .only_first_output = true});
    }
  }
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  OperatorCase c{.name = "nan", .op = "MaxPool", .attributes = attributes};
  c.inputs = {{.shape = {1, 1, 3, 3},
               .fill = CaseInput::Fill::values,
               .values = {1, nan, 2, -infinity, 3, infinity, nan, 4, 4}}};
  const Graph graph = graph_in(c, DType::float32);
  const std::vector<HostTensor> inputs = rounded_inputs(c, graph);
  const auto results = run_node(gpu.kernel("cuda.pool", "MaxPool"), graph, graph.nodes[0], inputs,
                                gpu.run_options());
  const auto y = results[0].as<float>();
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]) && std::isnan(y[2]));
  EXPECT_EQ(y[3], static_cast<float>(infinity));
  const auto at = results[1].as<std::int64_t>();
  EXPECT_EQ(std::vector<std::int64_t>(at.begin(), at.end()),
            (std::vector<std::int64_t>{1, 1, 6, 5}));
  gpu.expect_clean();
}

struct Sizes {
  std::int64_t b, h, s, t, d, e;
};

/// Heads next to each other in each row, as a product of [B S, 3 H D] leaves them.
Layout in_rows(const Shape& shape, std::int64_t width) {
  return {0, {shape[2] * width, shape[3], width, 1}};
}

OperatorCase attention(const Sizes& n, bool causal, CaseInput mask) {
  return {.name = "sizes",
          .op = "Attention",
          .inputs = {any_of({n.b, n.h, n.s, n.d}), any_of({n.b, n.h, n.t, n.d}),
                     any_of({n.b, n.h, n.t, n.e}), std::move(mask)},
          .attributes = {{"scale", 0.6}, {"causal", std::int64_t{causal}}}};
}

/// The gradient at these inputs: y and log_sum_exp are those of the double reference.
OperatorCase gradient_of(const OperatorCase& forward) {
  const Graph graph = graph_in(forward, DType::float64);
  const std::vector<HostTensor> inputs = rounded_inputs(forward, graph);
  const std::vector<HostTensor> y = in_double(forward, graph, inputs);
  const auto values = [](const HostTensor& tensor) {
    CaseInput input{.shape = tensor.shape(), .fill = CaseInput::Fill::values};
    for (double number : tensor.converted(DType::float64).as<double>())
      input.values.push_back(number);
    return input;
  };
  OperatorCase c{.name = forward.name, .op = "AttentionGrad", .attributes = forward.attributes};
  c.inputs = {any_of(y[0].shape()), values(inputs[0]), values(inputs[1]), values(inputs[2]),
              values(y[0]),         values(y[1]),      forward.inputs[3]};
  return c;
}

void check_attention(NetworkGpu& gpu, const OperatorCase& forward, DType dtype, bool strided) {
  NetworkCheck how{.dtype = dtype};
  const OperatorCase gradient = gradient_of(forward);
  const auto width = [&](const Shape& shape) { return shape[1] * shape[3] * 3; };
  const auto layouts = [&](const OperatorCase& c) {
    std::vector<Layout> all;
    for (const CaseInput& input : c.inputs) {
      const bool heads = strided && input.shape.size() == 4 && &input != &c.inputs.back();
      all.push_back(heads ? in_rows(input.shape, width(input.shape)) : row_major(input.shape));
    }
    return all;
  };
  how.input_layouts = layouts(forward);
  check_node(gpu, forward, how);
  how.input_layouts = layouts(gradient);
  for (std::size_t i = 1; i < 4 && strided; ++i) {
    const Shape& shape = gradient.inputs[i].shape;
    how.output_layouts.push_back(in_rows(shape, width(shape)));
  }
  check_node(gpu, gradient, how);
}

// Sizes below and above a tile's 64 and the 32 columns that fit into shared memory.
TEST(CudaNetworks, AttentionAcrossTiles) {
  NetworkGpu gpu;
  for (const Sizes& n : {Sizes{1, 2, 70, 70, 40, 72},
                         {2, 1, 64, 64, 64, 64},
                         {1, 1, 3, 130, 8, 8},
                         {1, 1, 130, 65, 33, 65}}) {
    for (const bool causal : {false, true}) {
      check_attention(gpu, attention(n, causal, absent()), DType::float32, causal);
    }
  }
  check_attention(gpu, attention({1, 2, 70, 70, 16, 16}, true, absent()), DType::bfloat16, true);
  check_attention(gpu, attention({2, 2, 40, 72, 24, 8}, false, absent()), DType::float16, true);
}

CaseInput mask_with_hidden(Shape shape, std::int64_t hidden_row,
                           double hiding = -std::numeric_limits<double>::infinity()) {
  CaseInput mask{.shape = shape, .fill = CaseInput::Fill::values};
  const std::int64_t count = element_count(shape), keys = shape.back();
  for (std::int64_t i = 0; i < count; ++i) {
    const bool hidden = i % 3 == 1 || i / keys == hidden_row;
    mask.values.push_back(hidden ? hiding : 0.25 * static_cast<double>(i % 7) - 0.5);
  }
  return mask;
}

// Some rows of the mask hide every key: y is 0 there, and they contribute no gradient.
TEST(CudaNetworks, AttentionMasks) {
  NetworkGpu gpu;
  const Sizes n{2, 2, 9, 16, 8, 8};
  for (const Shape& shape :
       {Shape{2, 2, 9, 16}, Shape{9, 16}, Shape{2, 1, 1, 16}, Shape{1, 2, 1, 16}, Shape{16}}) {
    for (const DType dtype : network_types) {
      check_attention(gpu, attention(n, false, mask_with_hidden(shape, shape.size() > 1 ? 1 : -1)),
                      dtype, false);
    }
  }
  for (const DType dtype : network_types) {
    check_attention(gpu, attention({1, 2, 16, 16, 8, 8}, true, mask_with_hidden({16, 16}, 3)),
                    dtype, true);
  }
}

// If finite numbers hide every key of a row alike, none is hidden in effect. Only in float32:
// cuDNN's gradient of 16 bits reads log_sum_exp as it is.
TEST(CudaNetworks, AttentionOfRowsThatFiniteNumbersHide) {
  NetworkGpu gpu;
  for (const std::int64_t row : {0, 66}) {
    for (const bool causal : {false, true}) {
      check_attention(
          gpu, attention({1, 2, 70, 130, 16, 40}, causal, mask_with_hidden({70, 130}, row, -1e30)),
          DType::float32, false);
    }
  }
}

TEST(CudaNetworks, NanOfAttentionStays) {
  NetworkGpu gpu;
  OperatorCase c = attention({1, 1, 2, 8, 8, 8}, false, mask_with_hidden({2, 8}, 1));
  c.inputs[0] = {.shape = {1, 1, 2, 8},
                 .fill = CaseInput::Fill::values,
                 .values = std::vector<double>(16, 0.5)};
  c.inputs[0].values[3] = std::numeric_limits<double>::quiet_NaN();
  const Graph graph = graph_in(c, DType::float16);
  const auto inputs = rounded_inputs(c, graph);
  for (const char* name : {"cudnn.attention", "cuda.attention"}) {
    const HostTensor y = run_node(gpu.kernel(name, "Attention"), graph, graph.nodes[0], inputs,
                                  gpu.run_options())[0];
    const auto numbers = y.as<Float16>();
    EXPECT_TRUE(std::isnan(static_cast<float>(numbers[0]))) << name;
    EXPECT_EQ(static_cast<float>(numbers[8]), 0.0f) << name << ": the row that sees nothing";
  }
  gpu.expect_clean();
}

// A request that need not be deterministic sums dq in memory, which begins with zeros.
TEST(CudaNetworks, GradientThatIsNotDeterministic) {
  NetworkGpu gpu;
  const OperatorCase c = gradient_of(attention({1, 2, 9, 9, 8, 8}, true, absent()));
  const Graph graph = graph_in(c, DType::bfloat16);
  const auto inputs = rounded_inputs(c, graph);
  Kernel kernel = gpu.kernel("cudnn.attention_grad", "AttentionGrad");
  kernel.prepare = [prepare = kernel.prepare](KernelRequest request) {
    request.deterministic = false;
    return prepare(request);
  };
  const auto results = run_node(kernel, graph, graph.nodes[0], inputs, gpu.run_options());
  const auto expected = in_double(c, graph, inputs);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(compare(results[i], expected[i], network_tolerance(DType::bfloat16)), "") << i;
  }
  ASSERT_EQ(gpu.cudnn.runs().size(), 1u);
  const auto& tensors = gpu.cudnn.runs()[0].graph->tensors;
  EXPECT_TRUE(
      std::any_of(tensors.begin(), tensors.end(), [](const FakeTensor& t) { return t.is_tiled; }));
  gpu.expect_clean();
}

}  // namespace
}  // namespace tandem::testing
