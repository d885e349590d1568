// How the fake cuBLASLt checks a product and answers a question.
#include <algorithm>
#include <cstring>

#include "tests/cuda/support/fake_cublas_lt.h"

namespace tandem::testing {
namespace {

/// Marks an algorithm; the index of its answer follows.
constexpr std::uint64_t algorithm_mark = 0x7ad3e3;

bool ranges_overlap(const void* x, std::size_t x_bytes, const void* y, std::size_t y_bytes) {
  const auto a = reinterpret_cast<std::uintptr_t>(x), b = reinterpret_cast<std::uintptr_t>(y);
  return x_bytes > 0 && y_bytes > 0 && a < b + y_bytes && b < a + x_bytes;
}

std::uint32_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  return static_cast<std::uint32_t>(std::min<std::uintptr_t>(bits & (~bits + 1), 256));
}

bool is_aligned(const void* address, std::uint32_t alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

std::string matrix_text(const LtMatrix& m) {
  return std::to_string(m.rows) + " x " + std::to_string(m.columns) + ", ld " +
         std::to_string(m.ld) + ", batch " + std::to_string(m.batch);
}

}  // namespace

std::size_t LtMatrix::span_bytes() const {
  const std::int64_t last = (batch - 1) * batch_stride +
                            static_cast<std::int64_t>(columns - 1) * ld +
                            static_cast<std::int64_t>(rows);
  return static_cast<std::size_t>(last) * element_bytes();
}

std::size_t LtMatrix::element_bytes() const { return type == CUDA_R_32F ? 4 : 2; }

cublasStatus_t FakeCublasLt::broken(const std::string& text, cublasStatus_t status) {
  if (std::find(problems_.begin(), problems_.end(), text) == problems_.end()) {
    problems_.push_back(text);
  }
  return status;
}

void FakeCublasLt::check_problem(const LtProblem& p) {
  const auto matrix = [&](const char* name, const LtMatrix& m) {
    if (m.rows == 0 || m.columns == 0) broken(std::string(name) + " is empty: " + matrix_text(m));
    if (m.rows > INT32_MAX || m.columns > INT32_MAX) broken(std::string(name) + " is too large");
    if (m.ld < static_cast<std::int64_t>(m.rows)) {
      broken(std::string(name) + "'s leading dimension is less than its rows: " + matrix_text(m));
    }
    if (m.batch < 1 || m.batch != p.d.batch)
      broken(std::string(name) + "'s batch: " + matrix_text(m));
    if (m.batch_stride < 0) broken(std::string(name) + "'s batch goes backwards");
  };
  matrix("A", p.a);
  matrix("B", p.b);
  matrix("C", p.c);
  matrix("D", p.d);
  const bool ta = p.operation.transpose_a == CUBLAS_OP_T,
             tb = p.operation.transpose_b == CUBLAS_OP_T;
  const std::uint64_t m = ta ? p.a.columns : p.a.rows, k = ta ? p.a.rows : p.a.columns;
  const std::uint64_t n = tb ? p.b.rows : p.b.columns, k_b = tb ? p.b.columns : p.b.rows;
  if (m != p.d.rows || n != p.d.columns || k != k_b) {
    broken("the extents do not fit: A " + matrix_text(p.a) + "; B " + matrix_text(p.b) + "; D " +
           matrix_text(p.d));
  }
  if (p.c.rows != p.d.rows || p.c.columns != p.d.columns) broken("C is not of D's extents");
  const auto matrix_span =
      static_cast<std::int64_t>(p.d.columns - 1) * p.d.ld + static_cast<std::int64_t>(p.d.rows);
  // Interleaved matrices (a batch within a row) do not overlap either.
  const bool interleaved = p.d.batch_stride * p.d.batch <= p.d.ld &&
                           p.d.batch_stride >= static_cast<std::int64_t>(p.d.rows);
  if (p.d.batch > 1 && p.d.batch_stride < matrix_span && !interleaved) {
    broken("the batch's results overlap: " + matrix_text(p.d) + ", stride " +
           std::to_string(p.d.batch_stride));
  }
  const cudaDataType_t type = p.a.type;
  if (p.b.type != type || p.c.type != type || p.d.type != type) broken("operands of several types");
  const bool fast = p.operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if (!fast && p.operation.compute != CUBLAS_COMPUTE_32F) broken("computes in another type");
  if (fast && type != CUDA_R_32F) broken("TF32 for 16-bit operands");
  if (p.operation.scale != CUDA_R_32F) broken("scales are not float32");
  const std::uint32_t known[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS,
                                 CUBLASLT_EPILOGUE_RELU,    CUBLASLT_EPILOGUE_RELU_BIAS,
                                 CUBLASLT_EPILOGUE_GELU,    CUBLASLT_EPILOGUE_GELU_BIAS};
  if (std::find(std::begin(known), std::end(known), p.operation.epilogue) == std::end(known)) {
    broken("epilogue " + std::to_string(p.operation.epilogue) + " is unknown to the fake");
  }
  if (p.operation.has_bias() && p.operation.bias == nullptr) {
    broken("an epilogue with a bias without its address");
  }
}

cublasStatus_t FakeCublasLt::heuristic(LtProblem problem, cublasLtMatmulHeuristicResult_t& to,
                                       int& count) {
  count = 0;
  const std::size_t before = problems_.size();
  check_problem(problem);
  if (problems_.size() > before) return CUBLAS_STATUS_INVALID_VALUE;
  if (problem.operation.has_bias()) problem.bias_alignment = alignment_of(problem.operation.bias);
  // No workspace, little or much, since real algorithms differ like that.
  constexpr std::size_t needs[] = {0, 4112, 65536};
  problem.workspace_bytes =
      std::min<std::size_t>(needs[answers_.size() % 3], problem.preference.workspace_bytes);
  questions_.push_back(problem);
  if (unsupported && unsupported(problem)) return CUBLAS_STATUS_NOT_SUPPORTED;
  to = {};
  to.algo.data[0] = algorithm_mark;
  to.algo.data[1] = answers_.size();
  to.workspaceSize = problem.workspace_bytes;
  to.state = CUBLAS_STATUS_SUCCESS;
  count = 1;
  answers_.push_back(std::move(problem));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t FakeCublasLt::multiply(const LtProblem& given, const cublasLtMatmulAlgo_t* algorithm,
                                      const void* alpha, const void* beta, const void* a,
                                      const void* b, const void* c, void* d, void* workspace,
                                      std::size_t workspace_bytes, cudaStream_t stream) {
  const std::size_t before = problems_.size();
  if (algorithm == nullptr || algorithm->data[0] != algorithm_mark ||
      algorithm->data[1] >= answers_.size()) {
    return broken("an algorithm that no heuristic gave");
  }
  LtProblem p = answers_[algorithm->data[1]];
  const LtOperation &asked = p.operation, &now = given.operation;
  const bool same = p.a == given.a && p.b == given.b && p.c == given.c && p.d == given.d &&
                    asked.compute == now.compute && asked.scale == now.scale &&
                    asked.pointer_mode == now.pointer_mode && asked.epilogue == now.epilogue &&
                    asked.transpose_a == now.transpose_a && asked.transpose_b == now.transpose_b;
  if (!same) broken("the algorithm was asked for another product");
  if (now.has_bias() && (now.bias == nullptr || !is_aligned(now.bias, p.bias_alignment))) {
    broken("the bias is not where the heuristic was told");
  }
  p.operation.bias = now.bias;
  const auto operand = [&](const char* name, const void* address, const LtMatrix& m,
                           std::uint32_t alignment) {
    if (address == nullptr) broken(std::string(name) + " is null");
    const auto stride = static_cast<std::size_t>(m.batch_stride) * m.element_bytes();
    if (!is_aligned(address, alignment) || (m.batch > 1 && stride % alignment != 0)) {
      broken(std::string(name) + " is not aligned to " + std::to_string(alignment) + " bytes");
    }
    if (ranges_overlap(address, m.span_bytes(), workspace, workspace_bytes)) {
      broken(std::string(name) + " lies in the workspace");
    }
  };
  operand("A", a, p.a, p.preference.alignment_a);
  operand("B", b, p.b, p.preference.alignment_b);
  operand("C", c, p.c, p.preference.alignment_c);
  operand("D", d, p.d, p.preference.alignment_d);
  if (ranges_overlap(a, p.a.span_bytes(), d, p.d.span_bytes()) ||
      ranges_overlap(b, p.b.span_bytes(), d, p.d.span_bytes())) {
    broken("the result overwrites a factor");
  }
  if (c == d ? !(p.c == p.d) : ranges_overlap(c, p.c.span_bytes(), d, p.d.span_bytes())) {
    broken("C and D overlap, but are not one matrix");
  }
  if (workspace_bytes < p.workspace_bytes) broken("the workspace is too small");
  if (workspace_bytes > p.preference.workspace_bytes) {
    broken("the workspace is larger than the preference says");
  }
  if (workspace_bytes > 0 && (workspace == nullptr || !is_aligned(workspace, 16))) {
    broken("the workspace is null or not aligned to 16 bytes");
  }
  const bool on_host = now.pointer_mode == CUBLASLT_POINTER_MODE_HOST;
  if (!on_host && now.pointer_mode != CUBLASLT_POINTER_MODE_DEVICE) broken("another pointer mode");
  if (alpha == nullptr || beta == nullptr) broken("alpha or beta is null");
  if (problems_.size() > before) return CUBLAS_STATUS_INVALID_VALUE;

  LtCall call{p, 0, 0, a, b, c, d};
  if (on_host) {
    call.alpha = *static_cast<const float*>(alpha);
    call.beta = *static_cast<const float*>(beta);
  }
  calls_.push_back(call);
  const cudaError_t error = runtime_->enqueue(stream, "cublasLtMatmul", [=, this] {
    if (workspace_bytes > 0) std::memset(workspace, 0xff, workspace_bytes);
    const float x = on_host ? call.alpha : *static_cast<const float*>(alpha);
    const float y = on_host ? call.beta : *static_cast<const float*>(beta);
    multiply_in_double(call.problem, x, y, a, b, c, d);
  });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace tandem::testing
