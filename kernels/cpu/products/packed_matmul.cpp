// Products with packed weights, strip by strip: the numbers of a strip are unpacked into memory
// that stays in the cache, and multiplied there.
#include <algorithm>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/products/products.h"
#include "kernels/cpu/products/unpack.h"
#include "kernels/reference/packed_operands.h"

namespace tandem {
namespace {

constexpr std::int64_t strip_floats = 1 << 21;  // 8 MiB
constexpr std::int64_t strip_unit = 64;         // columns of y; whole tiles, and whole bytes

std::optional<std::string> refuse_packed(const KernelRequest& request) {
  if (isa_of(*request.facts) == Isa::baseline) return "needs a processor with AVX2 and FMA";
  const DType x = request.outputs[0].type.dtype;
  if (x != DType::float32) return "computes float32, not " + std::string(name_of(x));
  return std::nullopt;
}

// y[m, n] = x[m, k] times the numbers of W, for a strip of n after the other.
class PackedMatMulKernel final : public PreparedKernel {
 public:
  explicit PackedMatMulKernel(const KernelRequest& request)
      : matrix_(packed_operand(request, 1)),
        has_zeros_(request.is_present(3)),
        transposed_(request.attributes().flag("transposed")),
        threads_(request.facts->threads) {
    const Packing& packing = matrix_.packing;
    n_ = transposed_ ? packing.rows : packing.columns;
    k_ = transposed_ ? packing.columns : packing.rows;
    m_ = n_ == 0 ? 0 : request.outputs[0].type.elements() / n_;
    is_dot_ = transposed_ && m_ <= most_dot_rows && has_row_products(packing);
    if (is_dot_) return;
    const std::int64_t units =
        std::max<std::int64_t>(strip_floats / std::max<std::int64_t>(k_, 1) / strip_unit, 1);
    strip_ = std::min(units * strip_unit, std::max<std::int64_t>(n_, 1));
    whole_ = plan(strip_, *request.facts);
    const std::int64_t rest = n_ % strip_;
    last_ = rest == 0 ? whole_ : plan(rest, *request.facts);
    strip_bytes_ = static_cast<std::size_t>((strip_ * k_ * 4 + 63) / 64 * 64);
    workspace_bytes = strip_bytes_ + std::max(whole_.workspace_bytes(), last_.workspace_bytes());
  }

  void run(const KernelArguments& x) noexcept override {
    if (m_ == 0) return;
    const PackedMatrix w = at_addresses(matrix_, x, 1, has_zeros_);
    if (is_dot_) {
      const float* const rows = static_cast<const float*>(x.inputs[0]);
      float* const y = static_cast<float*>(x.outputs[0]);
      parallel_ranges(threads_, n_, n_ * w.packing.row_bytes,
                      [&](std::int64_t begin, std::int64_t end) {
                        multiply_rows_avx2(w, begin, end, rows, m_, y, n_);
                      });
      return;
    }
    float* const numbers = static_cast<float*>(x.workspace);
    void* const rest = static_cast<char*>(x.workspace) + strip_bytes_;
    GemmArguments g;
    g.a = static_cast<const float*>(x.inputs[0]);
    g.b = numbers;
    for (std::int64_t first = 0; first < n_; first += strip_) {
      const std::int64_t end = std::min(first + strip_, n_);
      unpack_strip(w, first, end, numbers);
      g.c = static_cast<float*>(x.outputs[0]) + first;
      run_gemm(end - first == strip_ ? whole_ : last_, g, rest);
    }
  }

 private:
  // W's rows lie in the strip one after the other, as they do in W.
  GemmPlan plan(std::int64_t n, const DeviceFacts& facts) const {
    GemmShape shape;
    shape.m = m_;
    shape.n = n;
    shape.k = k_;
    shape.a_m = k_;
    shape.a_k = 1;
    shape.b_k = transposed_ ? 1 : n;
    shape.b_n = transposed_ ? k_ : 1;
    shape.c_m = m_ == 1 ? n : n_;
    shape.c_n = 1;
    return plan_gemm(shape, facts.threads, isa_of(facts));
  }

  void unpack_strip(const PackedMatrix& w, std::int64_t first, std::int64_t end, float* to) const {
    const std::int64_t rows = transposed_ ? end - first : k_;
    const std::int64_t width = transposed_ ? k_ : end - first;
    parallel_ranges(threads_, rows, rows * width * 4, [&](std::int64_t begin, std::int64_t stop) {
      for (std::int64_t i = begin; i < stop; ++i) {
        const std::int64_t r = transposed_ ? first + i : i, c = transposed_ ? 0 : first;
        unpack_row_avx2(w, r, c, c + width, to + i * width);
      }
    });
  }

  PackedMatrix matrix_;
  bool has_zeros_, transposed_;
  bool is_dot_ = false;  // by multiply_rows_avx2
  int threads_;
  std::int64_t m_ = 0, n_ = 0, k_ = 0, strip_ = 1;
  GemmPlan whole_, last_;
  std::size_t strip_bytes_ = 0;
};

std::unique_ptr<PreparedKernel> prepare_packed_matmul(const KernelRequest& request) {
  return std::make_unique<PackedMatMulKernel>(request);
}

std::unique_ptr<PreparedKernel> prepare_unpack(const KernelRequest& request) {
  return prepared([matrix = packed_operand(request, 0), has_zeros = request.is_present(2),
                   threads = request.facts->threads](const KernelArguments& x) {
    const PackedMatrix from = at_addresses(matrix, x, 0, has_zeros);
    float* const y = static_cast<float*>(x.outputs[0]);
    const std::int64_t rows = from.packing.rows, columns = from.packing.columns;
    parallel_ranges(threads, rows, rows * columns * 4, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r)
        unpack_row_avx2(from, r, 0, columns, y + r * columns);
    });
  });
}

}  // namespace

void add_packed_kernels(KernelList& list) {
  list.push_back({"simd.packed_matmul", "PackedMatMul", refuse_packed, propose_row_major,
                  prepare_packed_matmul});
  list.push_back({"simd.unpack", "Unpack", refuse_packed, propose_row_major, prepare_unpack});
}

}  // namespace tandem
