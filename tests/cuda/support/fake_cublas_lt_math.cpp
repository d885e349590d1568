// What the fake cuBLASLt computes, in double.
#include <cmath>

#include "engine/graph/half.h"
#include "tests/cuda/support/fake_cublas_lt.h"

namespace tandem::testing {
namespace {

double read(const void* from, cudaDataType_t type, std::int64_t i) {
  switch (type) {
    case CUDA_R_16F:
      return static_cast<const Float16*>(from)[i];
    case CUDA_R_16BF:
      return static_cast<const BFloat16*>(from)[i];
    default:
      return static_cast<const float*>(from)[i];
  }
}

void write(void* to, cudaDataType_t type, std::int64_t i, double value) {
  const auto x = static_cast<float>(value);
  switch (type) {
    case CUDA_R_16F:
      static_cast<Float16*>(to)[i] = Float16(x);
      break;
    case CUDA_R_16BF:
      static_cast<BFloat16*>(to)[i] = BFloat16(x);
      break;
    default:
      static_cast<float*>(to)[i] = x;
  }
}

double activated(std::uint32_t epilogue, double x) {
  switch (epilogue & ~static_cast<std::uint32_t>(CUBLASLT_EPILOGUE_BIAS)) {
    case CUBLASLT_EPILOGUE_RELU:
      return std::fmax(x, 0.0);
    case CUBLASLT_EPILOGUE_GELU:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    default:
      return x;
  }
}

/// op(X) of one matrix of the batch as a dense row-major array.
std::vector<double> dense(const LtMatrix& m, bool transposed, const void* from,
                          std::int64_t batch) {
  const auto rows = static_cast<std::int64_t>(m.rows),
             columns = static_cast<std::int64_t>(m.columns);
  std::vector<double> values(m.rows * m.columns);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const double x = read(from, m.type, batch * m.batch_stride + i + j * m.ld);
      values[static_cast<std::size_t>(transposed ? j * rows + i : i * columns + j)] = x;
    }
  }
  return values;
}

}  // namespace

void multiply_in_double(const LtProblem& p, double alpha, double beta, const void* a, const void* b,
                        const void* c, void* d) {
  const bool ta = p.operation.transpose_a == CUBLAS_OP_T,
             tb = p.operation.transpose_b == CUBLAS_OP_T;
  const auto rows = static_cast<std::int64_t>(p.d.rows),
             columns = static_cast<std::int64_t>(p.d.columns);
  const auto depth = static_cast<std::int64_t>(ta ? p.a.rows : p.a.columns);
  for (std::int64_t batch = 0; batch < p.d.batch; ++batch) {
    const std::vector<double> left = dense(p.a, ta, a, batch);
    const std::vector<double> right = dense(p.b, !tb, b, batch);  // column-major
    for (std::int64_t i = 0; i < rows; ++i) {
      const double* const x = left.data() + i * depth;
      for (std::int64_t j = 0; j < columns; ++j) {
        const double* const w = right.data() + j * depth;
        double sum = 0;
        for (std::int64_t l = 0; l < depth; ++l) sum += x[l] * w[l];
        sum *= alpha;
        if (beta != 0) sum += beta * read(c, p.c.type, batch * p.c.batch_stride + i + j * p.c.ld);
        if (p.operation.has_bias()) sum += read(p.operation.bias, p.d.type, i);
        write(d, p.d.type, batch * p.d.batch_stride + i + j * p.d.ld,
              activated(p.operation.epilogue, sum));
      }
    }
  }
}

}  // namespace tandem::testing
