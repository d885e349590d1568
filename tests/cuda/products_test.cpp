// MatMul, Gemm and GemmSgd of a GPU against the double reference: every case, and many shapes.
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "engine/graph/builder.h"
#include "tests/cuda/support/odd_layouts.h"
#include "tests/cuda/support/product_gpu.h"

namespace tandem::testing {
namespace {

const OperatorSet& product_operators() {
  static const OperatorSet set = all_operators();
  return set;
}

bool is_product(const std::string& op) { return op == "MatMul" || op == "Gemm" || op == "GemmSgd"; }

/// Allows one rounding of the result; a pass of Tandem's own after the product rounds again.
double product_tolerance(DType dtype) {
  switch (dtype) {
    case DType::bfloat16:
      return 6e-3;
    case DType::float16:
      return 8e-4;
    case DType::float32:
      return 1e-6;
    default:
      return 0;
  }
}

Layout with_gaps(const Shape& shape) {
  Layout layout = sliced(shape);
  for (std::int64_t& stride : layout.strides) stride *= 2;
  return layout;
}

Layout backwards(const Shape& shape) {
  Layout layout = row_major(shape);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    layout.offset += std::max<std::int64_t>(shape[i] - 1, 0) * layout.strides[i];
    layout.strides[i] = -layout.strides[i];
  }
  return layout;
}

constexpr NamedLayout product_layouts[] = {{"row-major", row_major},
                                           {"reversed order", reversed_order},
                                           {"sliced", sliced},
                                           {"gaps", with_gaps},
                                           {"backwards", backwards}};

HostTensor product_reference(const Graph& graph, const std::vector<HostTensor>& inputs) {
  const Kernel* kernel = choose_kernel(reference_list(), plain_request(graph, graph.nodes[0]));
  if (kernel == nullptr) throw std::runtime_error("no reference kernel");
  return run_node(*kernel, graph, graph.nodes[0], inputs)[0];
}

/// Compares the graph's node on the GPU with the double reference of the same numbers (`wide`).
void check_product(ProductGpu& gpu, const Graph& graph, const Graph& wide,
                   const std::vector<HostTensor>& inputs, const std::vector<Layout>& layouts) {
  const Node& node = graph.nodes[0];
  std::vector<std::string> refusals;
  const Kernel* kernel =
      choose_kernel(gpu.kernels, plain_request(graph, node, gpu.facts), &refusals);
  ASSERT_NE(kernel, nullptr) << (refusals.empty() ? "" : refusals[0]);
  std::vector<HostTensor> exact;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId id = wide.nodes[0].inputs[i];
    exact.push_back(id ? inputs[i].converted(wide.type(id).dtype) : HostTensor());
  }
  RunOptions options = gpu.run_options();
  options.input_layouts = layouts;
  const HostTensor y = run_node(*kernel, graph, node, inputs, options)[0];
  EXPECT_EQ(compare(y, product_reference(wide, exact), product_tolerance(y.type().dtype)), "")
      << kernel->name;
  gpu.expect_clean();
}

TEST(Products, EveryCase) {
  ProductGpu gpu;
  int ran = 0;
  for (const OperatorCase& c : all_cases()) {
    if (!is_product(c.op)) continue;
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16, DType::float64}) {
      if (dtype == DType::float64 && c.op != "MatMul") continue;
      const Graph graph = case_graph(c, product_operators(), dtype);
      // Integers are computed in their own type.
      const DType result = graph.type(graph.nodes[0].outputs[0]).dtype;
      const Graph wide =
          is_float(result) ? case_graph(c, product_operators(), DType::float64) : graph;
      const std::vector<HostTensor> inputs = case_inputs(c, dtype);
      for (const NamedLayout& variant : product_layouts) {
        SCOPED_TRACE(c.op + " " + c.name + ", " + std::string(name_of(dtype)) + ", " +
                     variant.name);
        std::vector<Layout> layouts;
        for (const HostTensor& x : inputs) layouts.push_back(variant.layout(x.shape()));
        check_product(gpu, graph, wide, inputs, layouts);
        ++ran;
      }
    }
  }
  EXPECT_GT(ran, 300);
}

// Row-major, as these kernels ask for it.
TEST(Products, EveryPackedCase) {
  ProductGpu gpu;
  int ran = 0;
  for (const OperatorCase& c : all_cases()) {
    if (c.op != "PackedMatMul" && c.op != "Unpack") continue;
    SCOPED_TRACE(c.op + " " + c.name);
    const Graph graph = case_graph(c, product_operators(), DType::float32);
    const Graph wide = case_graph(c, product_operators(), DType::float64);
    const std::vector<HostTensor> inputs = case_inputs(c, DType::float32);
    std::vector<Layout> layouts;
    for (const HostTensor& x : inputs) layouts.push_back(row_major(x.shape()));
    check_product(gpu, graph, wide, inputs, layouts);
    ++ran;
  }
  EXPECT_GT(ran, 150);
}

// More elements than a small GPU has threads.
TEST(Products, ManyIntegers) {
  FakeRuntimeOptions options;
  options.properties.name = "Small GPU";
  options.properties.multiprocessors = 1;
  ProductGpu gpu(options);
  OperatorCase c;
  c.op = "MatMul";
  c.name = "many integers";
  for (const Shape& shape : {Shape{2, 40, 9}, Shape{9, 40}}) {
    CaseInput input;
    input.shape = shape;
    input.dtype = DType::int32;
    input.fill = CaseInput::Fill::integers;
    input.low = -9;
    input.high = 9;
    c.inputs.push_back(input);
  }
  const Graph graph = case_graph(c, product_operators(), DType::float32);
  check_product(gpu, graph, graph, case_inputs(c, DType::float32), {});
}

/// Makes random extents, layouts and epilogues.
class Sampler {
 public:
  explicit Sampler(unsigned start) : random_(start) {}

  std::int64_t extent() {
    constexpr std::int64_t extents[] = {1, 2, 7, 31, 33, 64, 130};
    return extents[random_() % std::size(extents)];
  }
  std::size_t below(std::size_t n) { return random_() % n; }
  bool coin() { return below(2) == 0; }
  HostTensor tensor(const Shape& shape, DType dtype) {
    HostTensor x(TensorType{DType::float32, shape});
    for (float& value : x.as<float>()) {
      value = static_cast<float>(random_() >> 8) * 0x1p-23f - 1;
    }
    return x.converted(dtype);
  }
  /// Row-major, the last two axes swapped, or a slice of a larger tensor.
  Layout matrix_layout(const Shape& shape) {
    const std::size_t kind = below(3);
    if (kind == 0 || shape.size() < 2) return row_major(shape);
    if (kind == 1) return sliced(shape);
    std::vector<int> order(shape.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    return permuted(shape, order);
  }

 private:
  std::mt19937 random_;
};

struct Sample {
  std::string op;
  std::vector<Shape> shapes;
  std::vector<bool> absent;  // inputs that are not given
  Attributes attributes;
};

Graph graph_of(const Sample& sample, DType dtype) {
  GraphBuilder builder(product_operators());
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < sample.shapes.size(); ++i) {
    const bool rate = sample.op == "GemmSgd" && i == 3;
    inputs.push_back(sample.absent[i]
                         ? ValueId{}
                         : builder.input("x" + std::to_string(i),
                                         {rate ? DType::float32 : dtype, sample.shapes[i]}));
  }
  builder.output("y", builder.node(sample.op, inputs, sample.attributes)[0]);
  return builder.finish();
}

void check_sample(ProductGpu& gpu, Sampler& sampler, const Sample& sample) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const Graph graph = graph_of(sample, dtype);
    std::vector<HostTensor> inputs;
    std::vector<Layout> layouts;
    std::string trace = sample.op + " of " + std::string(name_of(dtype));
    for (std::size_t i = 0; i < sample.shapes.size(); ++i) {
      const ValueId id = graph.nodes[0].inputs[i];
      inputs.push_back(id ? sampler.tensor(sample.shapes[i], graph.type(id).dtype) : HostTensor());
      layouts.push_back(sampler.matrix_layout(sample.shapes[i]));
      if (id) trace += " " + to_string(sample.shapes[i]) + " " + to_string(layouts.back());
    }
    SCOPED_TRACE(trace);
    check_product(gpu, graph, graph_of(sample, DType::float64), inputs, layouts);
  }
}

TEST(Products, RandomMatMul) {
  ProductGpu gpu;
  Sampler sampler(1);
  for (int i = 0; i < 120; ++i) {
    const std::int64_t m = sampler.extent(), n = sampler.extent(), k = sampler.extent();
    Shape a{m, k}, b{k, n};
    switch (sampler.below(6)) {
      case 1:
        a = {3, m, k};
        b = {3, k, n};
        break;
      case 2:
        a = {3, m, k};
        break;
      case 3:
        b = {3, k, n};
        break;
      case 4:
        a = {2, 1, m, k};
        b = {3, k, n};
        break;
      case 5:
        a = {2, 3, m, k};
        b = {2, 3, k, n};
        break;
    }
    check_sample(gpu, sampler, {"MatMul", {a, b}, {false, false}, {}});
  }
}

TEST(Products, RandomGemm) {
  FakeRuntimeOptions options;  // so small that our pass needs more than one round
  options.properties.name = "Small GPU";
  options.properties.major = 9;
  options.properties.multiprocessors = 1;
  ProductGpu gpu(options);
  Sampler sampler(2);
  for (int i = 0; i < 100; ++i) {
    const std::int64_t m = sampler.extent(), n = sampler.extent(), k = sampler.extent();
    const char* const activations[] = {"", "Relu", "Gelu", "GeluTanh", "ReluGrad"};
    const std::string activation = activations[i % 5];
    const bool masked = activation == "ReluGrad";
    const bool deep = sampler.coin();
    const Shape a = deep ? Shape{2, m, k} : Shape{m, k}, y = deep ? Shape{2, m, n} : Shape{m, n};
    const double alpha = sampler.coin() ? 1.0 : -0.5;
    check_sample(gpu, sampler,
                 {"Gemm",
                  {a, {k, n}, {n}, y},
                  {false, false, sampler.coin(), !masked},
                  {{"activation", activation}, {"alpha", alpha}}});
  }
}

TEST(Products, RandomGemmSgd) {
  ProductGpu gpu;
  Sampler sampler(3);
  for (int i = 0; i < 40; ++i) {
    const std::int64_t m = sampler.extent(), n = sampler.extent(), k = sampler.extent();
    check_sample(gpu, sampler,
                 {"GemmSgd",
                  {{m, n}, {m, k}, {k, n}, {}},
                  {false, false, false, false},
                  {{"alpha", sampler.coin() ? 1.0 : 0.25}}});
  }
}

TEST(Products, RandomWithoutAnAlgorithmOfTheLibrary) {
  ProductGpu gpu;
  gpu.lt.unsupported = [](const LtProblem&) { return true; };
  Sampler sampler(5);
  const char* const activations[] = {"", "Relu", "Gelu", "GeluTanh", "ReluGrad"};
  for (int i = 0; i < 30; ++i) {
    const std::int64_t m = sampler.extent(), n = sampler.extent(), k = sampler.extent();
    check_sample(gpu, sampler, {"MatMul", {{2, 1, m, k}, {3, k, n}}, {false, false}, {}});
    check_sample(
        gpu, sampler,
        {"GemmSgd", {{m, n}, {m, k}, {k, n}, {}}, {false, false, false, false}, {{"alpha", 0.25}}});
    const std::string activation = activations[i % 5];
    check_sample(gpu, sampler,
                 {"Gemm",
                  {{2, m, k}, {k, n}, {n}, {2, m, n}},
                  {false, false, sampler.coin(), activation != "ReluGrad"},
                  {{"activation", activation}, {"alpha", -0.5}}});
  }
  EXPECT_TRUE(gpu.lt.calls().empty());
}

// A product over zero elements needs no library.
TEST(Products, NothingToSum) {
  ProductGpu gpu;
  Sampler sampler(4);
  check_sample(gpu, sampler, {"MatMul", {{3, 0}, {0, 5}}, {false, false}, {}});
  check_sample(gpu, sampler, {"MatMul", {{2, 3, 0}, {2, 0, 5}}, {false, false}, {}});
  check_sample(gpu, sampler, {"MatMul", {{0}, {0}}, {false, false}, {}});
  check_sample(gpu, sampler, {"MatMul", {{0, 4}, {4, 5}}, {false, false}, {}});
  check_sample(gpu, sampler, {"MatMul", {{0, 2, 4}, {4, 5}}, {false, false}, {}});
  for (const char* activation : {"", "Relu", "Gelu", "GeluTanh"}) {
    check_sample(gpu, sampler,
                 {"Gemm",
                  {{3, 0}, {0, 8}, {8}, {3, 8}},
                  {false, false, false, true},
                  {{"activation", std::string(activation)}, {"alpha", 2.0}}});
  }
  check_sample(gpu, sampler,
               {"Gemm",
                {{3, 0}, {0, 5}, {5}, {3, 5}},
                {false, false, true, false},
                {{"activation", std::string("ReluGrad")}}});
  check_sample(gpu, sampler,
               {"GemmSgd", {{4, 5}, {4, 0}, {0, 5}, {}}, {false, false, false, false}, {}});
  EXPECT_TRUE(gpu.lt.questions().empty());
  EXPECT_TRUE(gpu.lt.calls().empty());
}

}  // namespace
}  // namespace tandem::testing
