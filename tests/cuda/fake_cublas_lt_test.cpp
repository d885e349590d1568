// The fake cuBLASLt itself: which calls it accepts and which errors it reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cuda/support/product_gpu.h"

namespace tandem::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A product of 2 x 3 and 3 x 2 by the library's own calls; tests break single steps.
struct FakeCublasLtTest : ::testing::Test {
  FakeCublasLtTest() : lt(*gpu.lt.table()) {
    lt.cublasLtCreate(&handle);
    lt.cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    lt.cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 2, 3, 2);
    lt.cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, 3, 2, 3);
    lt.cublasLtMatrixLayoutCreate(&d, CUDA_R_32F, 2, 2, 2);
    lt.cublasLtMatmulPreferenceCreate(&preference);
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{1} << 20);
  }
  template <class T>
  cublasStatus_t set(cublasLtMatmulDescAttributes_t attribute, T value) {
    return lt.cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value);
  }
  template <class T>
  cublasStatus_t set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
                     T value) {
    return lt.cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value);
  }
  template <class T>
  cublasStatus_t prefer(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    return lt.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
  }
  cublasStatus_t ask() {
    int count = 0;
    return lt.cublasLtMatmulAlgoGetHeuristic(handle, operation, a, b, d, d, preference, 1, &found,
                                             &count);
  }
  cublasStatus_t run() {
    return lt.cublasLtMatmul(handle, operation, &alpha, x, a, w, b, &beta, c, d, y, d, &found.algo,
                             workspace, workspace_bytes, gpu.stream);
  }
  /// Asks twice, since the second answer needs a workspace.
  void ask_for_workspace() {
    ask();
    ask();
    ASSERT_GT(found.workspaceSize, 0u);
    workspace_bytes = found.workspaceSize;
  }

  ProductGpu gpu;
  const cuda::CublasLt& lt;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t found = {};
  float alpha = 1, beta = 0;
  alignas(256) float x[64] = {1, 4, 2, 5, 3, 6};  // rows (1, 2, 3) and (4, 5, 6)
  alignas(256) float w[64] = {1, 0, 1, 2, 1, 0};  // columns (1, 0, 1) and (2, 1, 0)
  alignas(256) float y[64] = {};
  const void* c = y;
  alignas(256) unsigned char memory[1 << 17] = {};
  void* workspace = memory;
  std::size_t workspace_bytes = 0;
};

TEST_F(FakeCublasLtTest, Multiplies) {
  ask();
  EXPECT_EQ(run(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{4, 10, 4, 13}));
  EXPECT_THAT(gpu.lt.problems(), IsEmpty());
  ASSERT_EQ(gpu.lt.calls().size(), 1u);
  EXPECT_EQ(gpu.lt.calls()[0].alpha, 1);
}

TEST_F(FakeCublasLtTest, ScalesAddsAndActivates) {
  const float bias[2] = {-30, 1};
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, std::uint32_t{CUBLASLT_EPILOGUE_RELU_BIAS});
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias));
  alpha = 2;
  beta = 0.5;
  y[3] = 8;
  ask();
  EXPECT_EQ(run(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{0, 21, 0, 31}));
  EXPECT_THAT(gpu.lt.problems(), IsEmpty());
}

TEST_F(FakeCublasLtTest, ReportsWhatNoHeuristicKnows) {
  found = {};
  EXPECT_EQ(run(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(gpu.lt.problems(), ElementsAre("an algorithm that no heuristic gave"));
}

TEST_F(FakeCublasLtTest, ReportsAnotherProductThanWasAsked) {
  ask();
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, std::uint32_t{CUBLASLT_EPILOGUE_RELU});
  EXPECT_EQ(run(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(gpu.lt.problems(), ElementsAre("the algorithm was asked for another product"));
}

TEST_F(FakeCublasLtTest, ReportsExtents) {
  set(CUBLASLT_MATMUL_DESC_TRANSA, std::int32_t{CUBLAS_OP_T});
  EXPECT_EQ(ask(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(gpu.lt.problems(), Contains(HasSubstr("the extents do not fit")));
}

TEST_F(FakeCublasLtTest, ReportsLeadingDimensions) {
  lt.cublasLtMatrixLayoutDestroy(a);
  lt.cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 2, 3, 1);
  EXPECT_EQ(ask(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(gpu.lt.problems(),
              Contains(HasSubstr("A's leading dimension is less than its rows")));
}

TEST_F(FakeCublasLtTest, ReportsBatches) {
  set(d, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, std::int32_t{2});
  EXPECT_EQ(ask(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(gpu.lt.problems(), Contains(HasSubstr("A's batch")));
  EXPECT_THAT(gpu.lt.problems(), Contains(HasSubstr("the batch's results overlap")));
}

TEST_F(FakeCublasLtTest, ReportsTypes) {
  lt.cublasLtMatrixLayoutDestroy(a);
  lt.cublasLtMatrixLayoutCreate(&a, CUDA_R_16BF, 2, 3, 2);
  ask();
  EXPECT_THAT(gpu.lt.problems(), Contains("operands of several types"));
  lt.cublasLtMatmulDescDestroy(operation);
  lt.cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_16F, CUDA_R_16F);
  ask();
  EXPECT_THAT(gpu.lt.problems(), Contains("computes in another type"));
  EXPECT_THAT(gpu.lt.problems(), Contains("scales are not float32"));
}

TEST_F(FakeCublasLtTest, ReportsAttributesOfAnotherSize) {
  EXPECT_EQ(set(CUBLASLT_MATMUL_DESC_TRANSA, std::int64_t{0}), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(set(d, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, std::int64_t{1}),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint32_t{1}),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gpu.lt.problems().size(), 3u);
}

TEST_F(FakeCublasLtTest, ReportsBiases) {
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, std::uint32_t{CUBLASLT_EPILOGUE_BIAS});
  EXPECT_EQ(ask(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(gpu.lt.problems(), ElementsAre("an epilogue with a bias without its address"));
  alignas(16) const float bias[3] = {};
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias));
  ask();
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias + 1));
  EXPECT_EQ(run(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(gpu.lt.problems(), Contains("the bias is not where the heuristic was told"));
}

TEST_F(FakeCublasLtTest, ReportsAlignments) {
  ask();  // no alignment is given: 256 bytes
  c = y + 32;
  EXPECT_EQ(run(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(gpu.lt.problems(), ElementsAre("C is not aligned to 256 bytes"));
}

TEST_F(FakeCublasLtTest, ReportsWorkspaces) {
  ask_for_workspace();
  workspace_bytes -= 16;
  EXPECT_EQ(run(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(gpu.lt.problems(), Contains("the workspace is too small"));
  workspace_bytes += 16;
  workspace = memory + 8;
  EXPECT_EQ(run(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(gpu.lt.problems(), Contains(HasSubstr("not aligned to 16 bytes")));
}

// Scales that lie in the workspace are overwritten before they are read.
TEST_F(FakeCublasLtTest, AlgorithmsUseTheirWorkspace) {
  set(CUBLASLT_MATMUL_DESC_POINTER_MODE, std::int32_t{CUBLASLT_POINTER_MODE_DEVICE});
  ask_for_workspace();
  auto* const scales = reinterpret_cast<float*>(memory);
  scales[0] = 1;
  EXPECT_EQ(lt.cublasLtMatmul(handle, operation, scales, x, a, w, b, scales + 1, y, d, y, d,
                              &found.algo, workspace, workspace_bytes, gpu.stream),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_NE(y[0], y[0]);
}

TEST_F(FakeCublasLtTest, ReportsOverlaps) {
  ask();
  c = x;
  lt.cublasLtMatmul(handle, operation, &alpha, x, a, w, b, &beta, c, d, x, d, &found.algo, nullptr,
                    0, gpu.stream);
  EXPECT_THAT(gpu.lt.problems(), ElementsAre("the result overwrites a factor"));
}

TEST_F(FakeCublasLtTest, ReportsWhatDoesNotExist) {
  lt.cublasLtMatmulDescDestroy(operation);
  EXPECT_EQ(ask(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(lt.cublasLtMatmulDescDestroy(operation), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gpu.lt.problems().size(), 2u);
}

TEST_F(FakeCublasLtTest, ReportsFunctionsThatItDoesNotHave) {
  lt.cublasLtMatmulAlgoCheck(handle, operation, a, b, d, d, &found.algo, &found);
  EXPECT_THAT(gpu.lt.problems(), ElementsAre("a function is called that the fake does not have"));
}

}  // namespace
}  // namespace tandem::testing
