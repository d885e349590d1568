// cuBLASLt without a GPU: descriptors are plain structs, every call is checked against the
// library's rules, and products are computed in double on the host.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/libraries/cublas_lt.h"
#include "tests/cuda/support/fake_runtime.h"

namespace tandem::testing {

/// A matrix layout with its attributes; order and batch mode are the defaults, others are refused.
struct LtMatrix {
  cudaDataType_t type = CUDA_R_32F;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t ld = 0;
  std::int32_t batch = 1;
  std::int64_t batch_stride = 0;

  std::size_t element_bytes() const;
  std::size_t span_bytes() const;  // from the first element of the batch to past the last one
  bool operator==(const LtMatrix&) const = default;
};

struct LtOperation {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
  std::int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  std::int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;

  bool has_bias() const { return (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }
};

struct LtPreference {
  std::uint64_t workspace_bytes = 0;
  std::uint32_t reduction_schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t alignment_a = 256, alignment_b = 256, alignment_c = 256, alignment_d = 256;
};

/// The problem that a heuristic was asked to find an algorithm for.
struct LtProblem {
  LtOperation operation;
  LtMatrix a, b, c, d;
  LtPreference preference;
  std::uint32_t bias_alignment = 0;  // alignment of the bias when asked; at most 256
  std::size_t workspace_bytes = 0;   // what the algorithm needs
};

/// A call of cublasLtMatmul that passed the checks.
struct LtCall {
  LtProblem problem;
  float alpha = 0, beta = 0;  // values on the host; 0 if they lie on the GPU
  const void *a = nullptr, *b = nullptr, *c = nullptr;
  void* d = nullptr;
};

/// Only one can exist: the functions that make things have no argument that could name it.
class FakeCublasLt {
 public:
  explicit FakeCublasLt(std::shared_ptr<FakeRuntime> runtime);
  ~FakeCublasLt();
  FakeCublasLt(const FakeCublasLt&) = delete;
  FakeCublasLt& operator=(const FakeCublasLt&) = delete;

  const cuda::CublasLt* table() const { return &table_; }

  // Queries for tests.
  std::vector<std::string> problems() const { return problems_; }
  /// Handles and descriptors that were not destroyed.
  std::size_t live() const {
    return handles_.size() + operations_.size() + matrices_.size() + preferences_.size();
  }
  const std::vector<LtProblem>& questions() const { return questions_; }
  const std::vector<LtCall>& calls() const { return calls_; }
  void clear() { calls_.clear(), questions_.clear(); }

  // Settings for tests.
  /// The heuristic finds no algorithm for such a problem.
  std::function<bool(const LtProblem&)> unsupported;
  /// What later calls of that function return, without doing anything.
  std::map<std::string, cublasStatus_t> failing;

 private:
  friend struct LtFunctions;
  cublasStatus_t broken(const std::string& text,
                        cublasStatus_t status = CUBLAS_STATUS_INVALID_VALUE);
  void check_problem(const LtProblem& problem);
  cublasStatus_t heuristic(LtProblem problem, cublasLtMatmulHeuristicResult_t& to, int& count);
  cublasStatus_t multiply(const LtProblem& given, const cublasLtMatmulAlgo_t* algorithm,
                          const void* alpha, const void* beta, const void* a, const void* b,
                          const void* c, void* d, void* workspace, std::size_t workspace_bytes,
                          cudaStream_t stream);

  std::shared_ptr<FakeRuntime> runtime_;
  cuda::CublasLt table_;
  std::map<void*, std::unique_ptr<int>> handles_;
  std::map<void*, std::unique_ptr<LtOperation>> operations_;
  std::map<void*, std::unique_ptr<LtMatrix>> matrices_;
  std::map<void*, std::unique_ptr<LtPreference>> preferences_;
  std::vector<LtProblem> answers_;  // an algorithm is an index into this
  std::vector<LtProblem> questions_;
  std::vector<LtCall> calls_;
  std::vector<std::string> problems_;
};

/// d = epilogue(alpha op(a) op(b) + beta c) in double, rounded once. If beta is 0, `c` is not read.
void multiply_in_double(const LtProblem& problem, double alpha, double beta, const void* a,
                        const void* b, const void* c, void* d);

}  // namespace tandem::testing
