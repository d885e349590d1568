// What a GPU's products request from cuBLASLt: epilogues, types, alignments, scales. Also failures
// and captures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "tests/cuda/support/product_on_gpu.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

const OperatorSet& rule_operators() {
  static const OperatorSet set = all_operators();
  return set;
}

Graph node_graph(const std::string& op, const std::vector<TensorType>& inputs,
                 Attributes attributes = {}) {
  GraphBuilder builder(rule_operators());
  std::vector<ValueId> ids;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    // A type of rank 7 without elements marks an input that is left out.
    const bool absent = inputs[i].rank() == 7;
    ids.push_back(absent ? ValueId{} : builder.input("x" + std::to_string(i), inputs[i]));
  }
  builder.set_scope({"layer"});
  builder.output("y", builder.node(op, ids, attributes)[0]);
  return builder.finish();
}

const TensorType absent_type{DType::float32, Shape(7, 0)};

TensorType floats(Shape shape) { return {DType::float32, std::move(shape)}; }

int launches(const ProductGpu& gpu, const std::string& name) {
  int count = 0;
  for (const std::string& call : gpu.runtime->calls()) {
    count += call.find("launch " + name) == 0 ? 1 : 0;
  }
  return count;
}

struct EpilogueRow {
  const char* activation;
  bool bias;
  std::uint32_t epilogue;
  int passes;  // passes of Tandem's own kernels
};

TEST(ProductRules, EpiloguesOfTheLibraryWhereItHasThem) {
  const EpilogueRow rows[] = {
      {"", true, CUBLASLT_EPILOGUE_BIAS, 0},
      {"Relu", false, CUBLASLT_EPILOGUE_RELU, 0},
      {"Relu", true, CUBLASLT_EPILOGUE_RELU_BIAS, 0},
      {"GeluTanh", false, CUBLASLT_EPILOGUE_GELU, 0},
      {"GeluTanh", true, CUBLASLT_EPILOGUE_GELU_BIAS, 0},
      {"Gelu", false, CUBLASLT_EPILOGUE_DEFAULT, 1},
      {"Gelu", true, CUBLASLT_EPILOGUE_DEFAULT, 1},
      {"ReluGrad", false, CUBLASLT_EPILOGUE_DEFAULT, 1},
  };
  for (const EpilogueRow& row : rows) {
    SCOPED_TRACE(row.activation);
    ProductGpu gpu;
    const bool masked = std::string(row.activation) == "ReluGrad";
    OnGpu gemm(gpu,
               node_graph("Gemm",
                          {floats({4, 6}), floats({6, 8}), row.bias ? floats({8}) : absent_type,
                           masked ? floats({4, 8}) : absent_type},
                          {{"activation", std::string(row.activation)}}));
    gemm.prepare();
    gemm.run();
    ASSERT_EQ(gpu.lt.calls().size(), 1u);
    EXPECT_EQ(gpu.lt.calls()[0].problem.operation.epilogue, row.epilogue);
    EXPECT_EQ(launches(gpu, "finish_product"), row.passes);
    gpu.expect_clean();
  }
}

TEST(ProductRules, APassOfOursWhereTheLibraryHasNoAlgorithmWithTheEpilogue) {
  ProductGpu gpu;
  gpu.lt.unsupported = [](const LtProblem& p) {
    return p.operation.epilogue != CUBLASLT_EPILOGUE_DEFAULT;
  };
  OnGpu gemm(gpu, node_graph("Gemm", {floats({4, 6}), floats({6, 8}), floats({8}), absent_type},
                             {{"activation", std::string("Relu")}}));
  gemm.prepare();
  gemm.run();
  EXPECT_EQ(launches(gpu, "finish_product"), 1);
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = 0; j < 8; ++j) {
      double sum = gemm.in(2, j);
      for (std::int64_t l = 0; l < 6; ++l) sum += gemm.in(0, i * 6 + l) * gemm.in(1, l * 8 + j);
      EXPECT_NEAR(gemm.out(i * 8 + j), std::max(sum, 0.0), 1e-6);
    }
  }
  gpu.expect_clean();
}

TEST(ProductRules, TypesOfTheSums) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const bool tf32 : {false, true}) {
      ProductGpu gpu;
      gpu.gpu->allow_tf32 = tf32;
      OnGpu product(gpu, node_graph("MatMul", {{dtype, {4, 6}}, {dtype, {6, 8}}}));
      product.prepare();
      ASSERT_FALSE(gpu.lt.questions().empty());
      const LtProblem& asked = gpu.lt.questions()[0];
      EXPECT_EQ(asked.operation.compute, tf32 && dtype == DType::float32
                                             ? CUBLAS_COMPUTE_32F_FAST_TF32
                                             : CUBLAS_COMPUTE_32F);
      // Partial sums are never added in 16 bits.
      EXPECT_EQ(asked.preference.reduction_schemes,
                static_cast<std::uint32_t>(dtype == DType::float32
                                               ? CUBLASLT_REDUCTION_SCHEME_MASK
                                               : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
      EXPECT_EQ(asked.preference.workspace_bytes, std::uint64_t{32} << 20);
      gpu.expect_clean();
    }
  }
}

TEST(ProductRules, SmallerWorkspaceBeforeHopper) {
  FakeRuntimeOptions options;
  options.properties.name = "Older GPU";
  options.properties.major = 8;
  ProductGpu gpu(options);
  OnGpu product(gpu, node_graph("MatMul", {floats({4, 6}), floats({6, 8})}));
  product.prepare();
  EXPECT_EQ(gpu.lt.questions()[0].preference.workspace_bytes, std::uint64_t{4} << 20);
}

TEST(ProductRules, BFloat16NeedsAmpere) {
  FakeRuntimeOptions options;
  options.properties.name = "Old GPU";
  options.properties.major = 7;
  ProductGpu gpu(options);
  const Graph graph = node_graph("MatMul", {{DType::bfloat16, {4, 6}}, {DType::bfloat16, {6, 8}}});
  std::vector<std::string> refusals;
  const KernelRequest request = plain_request(graph, graph.nodes[0], gpu.facts);
  EXPECT_EQ(choose_kernel(gpu.kernels, request, &refusals), nullptr);
  EXPECT_THAT(refusals[0], HasSubstr("compute capability 8.0"));
}

// One prepared product at addresses that are multiples of 16 bytes, and at others.
TEST(ProductRules, AlgorithmsFitTheAddresses) {
  for (const std::int64_t shift : {0, 1, 2}) {
    for (const int operand : {0, 1, 2, 3}) {
      ProductGpu gpu;
      OnGpu gemm(gpu,
                 node_graph("Gemm", {floats({8, 16}), floats({16, 8}), floats({8}), absent_type}));
      if (operand < 3) gemm.shift(true, static_cast<std::size_t>(operand), shift);
      if (operand == 3) gemm.shift(false, 0, shift);
      gemm.prepare();
      // Two questions each for the best and the worst alignment: is there any algorithm, and is
      // there one with the epilogue?
      EXPECT_EQ(gpu.lt.questions().size(), 4u);
      gemm.run();
      ASSERT_EQ(gpu.lt.calls().size(), 1u);
      const std::uint32_t expected = shift == 0 ? 16 : 4;
      EXPECT_EQ(gpu.lt.calls()[0].problem.preference.alignment_a, expected);
      EXPECT_EQ(gpu.lt.calls()[0].problem.preference.alignment_d, expected);
      EXPECT_EQ(gpu.lt.calls()[0].problem.bias_alignment, expected);
      gpu.expect_clean();
    }
  }
}

// The alignment is not promised for matrices of a batch that begin at odd places.
TEST(ProductRules, BatchesLessenTheAlignment) {
  ProductGpu gpu;
  OnGpu product(gpu, node_graph("MatMul", {floats({3, 5, 6}), floats({3, 6, 7})}));
  product.prepare();
  product.run();
  ASSERT_EQ(gpu.lt.calls().size(), 1u);
  const LtPreference& preference = gpu.lt.calls()[0].problem.preference;
  EXPECT_EQ(preference.alignment_a, 8u);  // b: 42 elements
  EXPECT_EQ(preference.alignment_b, 8u);  // a: 30 elements
  EXPECT_EQ(preference.alignment_d, 4u);  // y: 35 elements
  gpu.expect_clean();
}

// y is column-major, or a slice of a larger tensor.
TEST(ProductRules, ResultsInTheirPlace) {
  for (const std::vector<std::int64_t>& strides :
       {std::vector<std::int64_t>{8, 1}, {1, 4}, {11, 1}, {1, 9}}) {
    ProductGpu gpu;
    OnGpu product(gpu, node_graph("MatMul", {floats({4, 6}), floats({6, 8})}));
    product.request().outputs[0].layout.strides = strides;
    const Kernel* kernel = choose_kernel(gpu.kernels, product.request());
    const Proposal proposal = kernel->propose(product.request())[0];
    EXPECT_TRUE(satisfies(proposal.outputs[0], product.request().outputs[0].layout, {4, 8}));
    product.prepare();
    product.run();
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t j = 0; j < 8; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < 6; ++l) {
          sum += product.in(0, i * 6 + l) * product.in(1, l * 8 + j);
        }
        EXPECT_NEAR(product.out(i * strides[0] + j * strides[1]), sum, 1e-6);
      }
    }
    if (strides[0] == 11) {
      EXPECT_EQ(product.out(8), 0) << "writes beside its slice";
    }
    gpu.expect_clean();
  }
}

TEST(ProductRules, ManyCallsAreRatherCopied) {
  ProductGpu gpu;
  const auto constraint_of_a = [&](std::int64_t heads, std::int64_t batch) {
    const Graph graph =
        node_graph("MatMul", {floats({batch, heads, 5, 4}), floats({batch, heads, 4, 6})});
    KernelRequest request = plain_request(graph, graph.nodes[0], gpu.facts);
    request.inputs[0].layout = permuted({batch, heads, 5, 4}, {0, 2, 1, 3});
    return choose_kernel(gpu.kernels, request)->propose(request)[0].inputs[0].kind;
  };
  EXPECT_EQ(constraint_of_a(12, 32), LayoutConstraint::Kind::any);
  EXPECT_EQ(constraint_of_a(17, 32), LayoutConstraint::Kind::row_major);
}

TEST(ProductRules, GemmSgdReadsItsRateOnTheGpu) {
  for (const bool in_place : {true, false}) {
    for (const bool transposed : {false, true}) {
      ProductGpu gpu;
      OnGpu update(
          gpu, node_graph("GemmSgd", {floats({5, 7}), floats({5, 3}), floats({3, 7}), floats({})},
                          {{"alpha", 0.5}}));
      if (transposed) {
        update.request().inputs[0].layout = permuted({5, 7}, {1, 0});
        update.request().outputs[0].layout = permuted({5, 7}, {1, 0});
      }
      PreparedKernel& prepared = update.prepare();
      update.place();
      const std::int64_t row = transposed ? 1 : 7, column = transposed ? 5 : 1;
      std::vector<double> expected;
      for (std::int64_t i = 0; i < 5; ++i) {
        for (std::int64_t j = 0; j < 7; ++j) {
          double sum = 0;
          for (std::int64_t l = 0; l < 3; ++l)
            sum += update.in(1, i * 3 + l) * update.in(2, l * 7 + j);
          expected.push_back(update.in(0, i * row + j * column) - 0.5 * update.in(3, 0) * sum);
        }
      }
      void* workspace = nullptr;
      gpu.runtime->allocate(workspace, prepared.workspace_bytes);
      const void* in[] = {update.input(0), update.input(1), update.input(2), update.input(3)};
      void* out[] = {in_place ? const_cast<void*>(in[0]) : update.output()};
      prepared.run({in, out, workspace, nullptr, gpu.stream});
      gpu.runtime->synchronize(gpu.stream);
      const auto* y = reinterpret_cast<const float*>(gpu.runtime->host_view(out[0]));
      for (std::int64_t i = 0; i < 35; ++i) {
        EXPECT_NEAR(y[i / 7 * row + i % 7 * column], expected[static_cast<std::size_t>(i)], 1e-6);
      }
      ASSERT_EQ(gpu.lt.calls().size(), 1u);
      EXPECT_EQ(gpu.lt.calls()[0].problem.operation.pointer_mode, CUBLASLT_POINTER_MODE_DEVICE);
      gpu.runtime->release(workspace);
      gpu.expect_clean();
    }
  }
}

// A captured product runs at each launch of the graph, with the operands' content at that time.
TEST(ProductRules, Captured) {
  for (const bool late : {false, true}) {
    FakeRuntimeOptions options;
    options.late = late;
    ProductGpu gpu(options);
    OnGpu gemm(gpu, node_graph("Gemm", {floats({4, 6}), floats({6, 8}), floats({8}), absent_type},
                               {{"activation", std::string("Gelu")}}));
    gemm.prepare();
    gemm.place();
    const float before = gemm.out(0);
    ASSERT_EQ(gpu.runtime->begin_capture(gpu.stream), cudaSuccess);
    gemm.run();
    cudaGraphExec_t graph = nullptr;
    ASSERT_EQ(gpu.runtime->end_capture(gpu.stream, graph), cudaSuccess);
    EXPECT_EQ(gemm.out(0), before);
    for (const float factor : {1.0f, 2.0f}) {
      float* const bias = reinterpret_cast<float*>(gpu.runtime->host_view(gemm.input(2)));
      bias[0] = factor;
      ASSERT_EQ(gpu.runtime->launch_graph(graph, gpu.stream), cudaSuccess);
      ASSERT_EQ(gpu.runtime->synchronize(gpu.stream), cudaSuccess);
      double sum = factor;
      for (std::int64_t l = 0; l < 6; ++l) sum += gemm.in(0, l) * gemm.in(1, l * 8);
      EXPECT_NEAR(gemm.out(0), 0.5 * sum * (1 + std::erf(sum / std::sqrt(2.0))), 1e-6);
    }
    gpu.runtime->destroy_graph(graph);
    gpu.expect_clean();
  }
}

TEST(ProductRules, FailuresAreNotedAndNotThrown) {
  ProductGpu gpu;
  OnGpu product(gpu, node_graph("MatMul", {floats({4, 6}), floats({6, 8})}));
  product.prepare();
  gpu.lt.failing["cublasLtMatmul"] = CUBLAS_STATUS_EXECUTION_FAILED;
  product.run();
  EXPECT_EQ(gpu.gpu->take_failure(), "cublasLtMatmul: execution failed");
  gpu.expect_clean();
}

std::string error_of(ProductGpu& gpu, const Graph& graph) {
  try {
    const KernelRequest request = plain_request(graph, graph.nodes[0], gpu.facts);
    choose_kernel(gpu.kernels, request)->prepare(request);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ProductRules, WhatCannotBePreparedIsAnError) {
  const Graph graph = node_graph("MatMul", {floats({4, 6}), floats({6, 8})});
  {
    ProductGpu gpu;
    gpu.gpu->libraries = std::make_shared<GivenLibraries>();
    EXPECT_THAT(error_of(gpu, graph), HasSubstr("tandem doctor"));
  }
  for (const char* call : {"cublasLtCreate", "cublasLtMatmulDescCreate",
                           "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate",
                           "cublasLtMatmulPreferenceCreate", "cublasLtMatmulAlgoGetHeuristic"}) {
    ProductGpu gpu;
    gpu.lt.failing[call] = CUBLAS_STATUS_INTERNAL_ERROR;
    EXPECT_THAT(error_of(gpu, graph), HasSubstr(call));
    gpu.kernels.clear();
    EXPECT_EQ(gpu.lt.live(), 0u) << call << " leaks";
  }
}

// The heuristics have no algorithm for bfloat16 if a matrix has one column or an odd leading
// dimension.
TEST(ProductRules, WhatTheLibraryHasNoAlgorithmForIsNamed) {
  ProductGpu gpu;
  gpu.lt.unsupported = [](const LtProblem& p) {
    return p.a.type == CUDA_R_16BF && (p.d.rows == 1 || p.a.ld % 2 == 1 || p.b.ld % 2 == 1);
  };
  const auto chosen = [&](DType dtype, const Shape& a, const Shape& b,
                          std::vector<std::string>* refusals = nullptr) {
    const Graph graph = node_graph("MatMul", {{dtype, a}, {dtype, b}});
    const KernelRequest request = plain_request(graph, graph.nodes[0], gpu.facts);
    return choose_kernel(gpu.kernels, request, refusals)->name;
  };
  EXPECT_EQ(chosen(DType::bfloat16, {4, 6}, {6, 8}), "cublas_lt.matmul");
  EXPECT_EQ(chosen(DType::float32, {4, 7}, {7, 1}), "cublas_lt.matmul");
  std::vector<std::string> refusals;
  EXPECT_EQ(chosen(DType::bfloat16, {4, 6}, {6, 1}, &refusals), "cuda.matmul");
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0],
            "cublas_lt.matmul: cuBLASLt has no algorithm for bfloat16[4, 6] times bfloat16[6, 1]");
  EXPECT_EQ(chosen(DType::bfloat16, {4, 7}, {7, 8}), "cuda.matmul");
  const std::size_t asked = gpu.lt.questions().size();
  EXPECT_EQ(chosen(DType::bfloat16, {4, 7}, {7, 8}), "cuda.matmul");
  EXPECT_EQ(gpu.lt.questions().size(), asked) << "asked once";
}

// Only row-major operands have an algorithm: others are copied.
TEST(ProductRules, LayoutsWithoutAnAlgorithmAreCopied) {
  ProductGpu gpu;
  gpu.lt.unsupported = [](const LtProblem& p) { return p.a.ld == 11; };
  const Graph graph = node_graph("MatMul", {floats({4, 6}), floats({6, 8})});
  KernelRequest request = plain_request(graph, graph.nodes[0], gpu.facts);
  const auto constraint = [&] {
    return choose_kernel(gpu.kernels, request)->propose(request)[0].inputs[1].kind;
  };
  EXPECT_EQ(constraint(), LayoutConstraint::Kind::any);
  request.inputs[1].layout.strides = {11, 1};
  EXPECT_EQ(choose_kernel(gpu.kernels, request)->name, "cublas_lt.matmul");
  EXPECT_EQ(constraint(), LayoutConstraint::Kind::row_major);
}

// The only algorithm is for aligned operands, and others are given.
TEST(ProductRules, AddressesWithoutAnAlgorithmAreMultipliedPlainly) {
  for (const bool activated : {false, true}) {
    for (const std::int64_t shift : {0, 1}) {
      ProductGpu gpu;
      gpu.lt.unsupported = [](const LtProblem& p) { return p.preference.alignment_a < 16; };
      OnGpu gemm(gpu,
                 node_graph("Gemm", {floats({8, 16}), floats({16, 8}), floats({8}), absent_type},
                            {{"activation", std::string(activated ? "Relu" : "")}}));
      gemm.shift(true, 0, shift);
      gemm.prepare();
      gemm.run();
      EXPECT_EQ(gpu.lt.calls().size(), shift == 0 ? 1u : 0u);
      EXPECT_EQ(launches(gpu, "plain_product"), shift);
      for (std::int64_t i = 0; i < 8; ++i) {
        for (std::int64_t j = 0; j < 8; ++j) {
          double sum = gemm.in(2, j);
          for (std::int64_t l = 0; l < 16; ++l)
            sum += gemm.in(0, i * 16 + l) * gemm.in(1, l * 8 + j);
          EXPECT_NEAR(gemm.out(i * 8 + j), activated ? std::max(sum, 0.0) : sum, 1e-5);
        }
      }
      gpu.expect_clean();
    }
  }
}

TEST(ProductRules, GivesEverythingBack) {
  ProductGpu gpu;
  {
    OnGpu product(gpu, node_graph("MatMul", {floats({3, 4, 6}), floats({3, 6, 8})}));
    product.prepare();
    product.run();
    EXPECT_GT(gpu.lt.live(), 1u);
  }
  EXPECT_EQ(gpu.lt.live(), 1u);  // the handle
  gpu.kernels.clear();
  EXPECT_EQ(gpu.lt.live(), 0u);
  gpu.expect_clean();
}

}  // namespace
}  // namespace tandem::testing
