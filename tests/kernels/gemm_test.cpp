// Gemm with its epilogues and the in-place SGD product.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kernels/cpu/products/gemm.h"
#include "tests/kernels/product_check.h"

namespace tandem::testing {
namespace {

TEST(Gemm, Epilogues) {
  for (const Shape& mnk :
       {Shape{32, 512, 784}, Shape{9, 10, 33}, Shape{70, 65, 48}, Shape{1, 17, 5}}) {
    for (const bool transposed : {false, true}) {
      for (const bool bias : {false, true}) {
        for (const char* activation : {"", "Relu", "Gelu", "GeluTanh", "ReluGrad"}) {
          const bool masked = std::string(activation) == "ReluGrad";
          ProductCase product{
              .op = "Gemm",
              .inputs = {{mnk[0], mnk[2]}, {mnk[2], mnk[1]}, {mnk[1]}, {mnk[0], mnk[1]}},
              .attributes = {{"activation", std::string(activation)}, {"alpha", 0.25}}};
          if (transposed) product.orders = {{0, 1}, {1, 0}};
          if (!bias) product.absent.push_back(2);
          if (!masked) product.absent.push_back(3);
          product.kernels = {"simd.gemm"};
          check_product(product);
        }
      }
    }
  }
}

TEST(Gemm, RowsOfThreeAxes) {
  check_product({.op = "Gemm",
                 .inputs = {{4, 33, 16}, {16, 20}, {20}, {4, 33, 20}},
                 .attributes = {{"activation", std::string("ReluGrad")}, {"alpha", 1.0}}});
}

TEST(GemmSgd, InPlace) {
  for (const Shape& mnk :
       {Shape{512, 784, 32}, Shape{10, 512, 32}, Shape{33, 31, 70}, Shape{512, 512, 256}}) {
    for (const std::vector<int>& master : {std::vector<int>{0, 1}, {1, 0}}) {
      check_product({.op = "GemmSgd",
                     .inputs = {{mnk[0], mnk[1]}, {mnk[0], mnk[2]}, {mnk[2], mnk[1]}, {}},
                     .attributes = {{"alpha", 0.5}},
                     .orders = {master, {1, 0}, {0, 1}},
                     .kernels = {"simd.gemm_sgd"}});
    }
  }
}

// A spilled accumulator or a missing vector form costs a factor; the noise of a busy machine does
// not.
TEST(Gemm, SpeedOfOneCore) {
  const auto features = processor_features();
  if (features.empty()) GTEST_SKIP() << "needs AVX2";
#ifndef NDEBUG
  GTEST_SKIP() << "speaks of optimised builds";
#endif
  DeviceFacts facts;
  facts.features = features;
  const std::int64_t n = 384;
  const GemmShape shape{
      .m = n, .n = n, .k = n, .a_m = n, .a_k = 1, .b_k = n, .b_n = 1, .c_m = n, .c_n = 1};
  const GemmPlan plan = plan_gemm(shape, 1, isa_of(facts));
  std::vector<float> a(n * n), b(n * n), c(n * n);
  const std::unique_ptr<void, decltype(&std::free)> workspace(
      std::aligned_alloc(64, plan.workspace_bytes()), &std::free);
  GemmArguments x;
  x.a = a.data();
  x.b = b.data();
  x.c = c.data();
  double best = 1e9;
  for (int i = 0; i < 30; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run_gemm(plan, x, workspace.get());
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  const double gflops = 2e-9 * static_cast<double>(n * n * n) / best;
  RecordProperty("gflops", static_cast<int>(gflops));
  EXPECT_GT(gflops, 20.0);
}

}  // namespace
}  // namespace tandem::testing
