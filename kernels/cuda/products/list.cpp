// The GPU's kernels for products, and what each takes: by cuBLASLt float32, bfloat16 and float16
// where it has an algorithm, by a plain kernel those and the other types.
#include <cstdint>
#include <limits>
#include <utility>

#include "kernels/cuda/kernel_forms.h"
#include "kernels/cuda/products/own_kernels.h"
#include "kernels/cuda/products/packed_numbers.h"
#include "kernels/cuda/products/prepared_products.h"

namespace tandem::cuda {
namespace {

using Kind = LayoutConstraint::Kind;

/// A product of more calls than these is rather copied into row-major operands.
constexpr std::int64_t most_calls = 16;

bool is_long(const Operand& operand) {
  if (!operand.present) return false;
  for (const std::int64_t extent : operand.type.shape) {
    if (extent > std::numeric_limits<std::int32_t>::max()) return true;
  }
  return false;
}

using Refusal = std::optional<std::string>;

Refusal refuse_product(const KernelRequest& request, const GpuContext& gpu) {
  const DType dtype = request.outputs[0].type.dtype;
  if (!is_short_float(dtype)) {
    return "computes float32, float16 and bfloat16, not " + std::string(name_of(dtype));
  }
  if (dtype == DType::bfloat16 && gpu.properties.major > 0 && gpu.properties.major < 8) {
    return "bfloat16 needs a GPU of compute capability 8.0";
  }
  for (const Operand& operand : request.inputs) {
    if (is_long(operand)) return "an axis of more than 2^31 - 1 elements";
  }
  return std::nullopt;
}

Refusal refuse_gemm(const KernelRequest& request, const GpuContext& gpu) {
  if (auto reason = refuse_product(request, gpu)) return reason;
  if (request.inputs[1].type.rank() != 2) return "the second operand is not a matrix";
  if (request.inputs[0].type.rank() < 2) return "the first operand is a vector";
  return std::nullopt;
}

Refusal refuse_gemm_sgd(const KernelRequest& request, const GpuContext& gpu) {
  if (auto reason = refuse_product(request, gpu)) return reason;
  if (request.outputs[0].type.rank() != 2) return "the parameter is not a matrix";
  return std::nullopt;
}

/// The factors' places in the inputs.
struct Factors {
  std::size_t a = 0, b = 1;
};

bool has_algorithm(const LtLibraryPointer& library, const Operand& a, const Operand& b,
                   const Operand& y) {
  const Product p = take_apart(a, b, y);
  if (p.m == 0 || p.n == 0 || p.k == 0 || p.count() == 0) return true;
  return LtLibrary::has_algorithm(library, p, y.type.dtype);
}

/// Where cuBLASLt's heuristics offer nothing even for row-major operands.
Refusal refuse_without_algorithm(const KernelRequest& request, const LtLibraryPointer& library,
                                 Factors factors) {
  Operand a = request.inputs[factors.a], b = request.inputs[factors.b], y = request.outputs[0];
  for (Operand* operand : {&a, &b, &y}) operand->layout = row_major(operand->type.shape);
  if (has_algorithm(library, a, b, y)) return std::nullopt;
  return "cuBLASLt has no algorithm for " + to_string(a.type) + " times " + to_string(b.type);
}

Refusal refuse_plain_matmul(const KernelRequest& request, const GpuContext& gpu) {
  const TensorType& y = request.outputs[0].type;
  if (is_short_float(y.dtype)) {
    if (auto reason = refuse_product(request, gpu)) return reason;
  }
  if (y.dtype == DType::boolean) return "computes numbers, not " + std::string(name_of(y.dtype));
  if (y.rank() > most_plain_axes) {
    return "more than " + std::to_string(most_plain_axes) + " axes";
  }
  return std::nullopt;
}

/// Batch axes become axes of the product.
Refusal refuse_many_axes(const KernelRequest& request) {
  for (const Operand& operand : request.inputs) {
    if (operand.present && operand.type.rank() > most_plain_axes)
      return "more than " + std::to_string(most_plain_axes) + " axes";
  }
  return std::nullopt;
}

LayoutConstraint constraint(Kind kind) { return {.kind = kind, .layout = {}}; }

/// The factors a and b as they lie where cuBLASLt reads them so, in few calls.
std::pair<LayoutConstraint, LayoutConstraint> factor_constraints(const LtLibraryPointer& library,
                                                                 const Operand& a, const Operand& b,
                                                                 const Operand& y) {
  const bool a_fits = is_readable(a, true), b_fits = is_readable(b, false);
  if (a_fits && b_fits && is_writable(y, a.type.rank(), b.type.rank()) &&
      (call_count(take_apart(a, b, y)) > most_calls || !has_algorithm(library, a, b, y))) {
    return {constraint(Kind::row_major), constraint(Kind::row_major)};
  }
  return {constraint(a_fits ? Kind::any : Kind::row_major),
          constraint(b_fits ? Kind::any : Kind::row_major)};
}

std::vector<Proposal> propose_matmul(const LtLibraryPointer& library,
                                     const KernelRequest& request) {
  const Operand &a = request.inputs[0], &b = request.inputs[1], &y = request.outputs[0];
  const auto [left, right] = factor_constraints(library, a, b, y);
  // Where there is nothing to sum, a pass over a row-major y writes zeros.
  const bool is_free = a.type.shape.back() > 0 && is_writable(y, a.type.rank(), b.type.rank());
  return {{.inputs = {left, right},
           .outputs = {constraint(is_free ? Kind::unit_stride : Kind::row_major)}}};
}

std::vector<Proposal> propose_gemm(const LtLibraryPointer& library, const KernelRequest& request) {
  const auto [left, right] =
      factor_constraints(library, request.inputs[0], request.inputs[1], request.outputs[0]);
  const LayoutConstraint plain = constraint(Kind::row_major);
  return {{.inputs = {left, right, plain, plain}, .outputs = {plain}}};
}

std::vector<Proposal> propose_gemm_sgd(const LtLibraryPointer& library,
                                       const KernelRequest& request) {
  const auto [left, right] =
      factor_constraints(library, request.inputs[1], request.inputs[2], request.outputs[0]);
  const LayoutConstraint dense = constraint(Kind::dense);
  return {{.inputs = {dense, left, right, constraint(Kind::row_major)}, .outputs = {dense}}};
}

// For short floats it asks for row-major operands: if it took any layout, it would be preferred to
// cuBLASLt with a copy.
std::vector<Proposal> propose_plain_matmul(const KernelRequest& request) {
  if (is_short_float(request.outputs[0].type.dtype)) return propose_row_major(request);
  return {{.inputs = {constraint(Kind::any), constraint(Kind::any)},
           .outputs = {constraint(Kind::any)}}};
}

std::vector<Proposal> propose_plain_gemm_sgd(const KernelRequest&) {
  const LayoutConstraint dense = constraint(Kind::dense), plain = constraint(Kind::row_major);
  return {{.inputs = {dense, plain, plain, plain}, .outputs = {dense}}};
}

Refusal refuse_packed_without_algorithm(const KernelRequest& request,
                                        const LtLibraryPointer& library) {
  if (auto reason = refuse_packed(request)) return reason;
  if (auto reason = refuse_product(request, library->gpu())) return reason;
  const StripOperands of = strip_operands(request);
  if (has_algorithm(library, of.x, of.strip, of.y)) return std::nullopt;
  return "cuBLASLt has no algorithm for " + to_string(of.x.type) + " times " +
         to_string(of.strip.type);
}

using Refuse = Refusal (*)(const KernelRequest&, const GpuContext&);
using Propose = std::vector<Proposal> (*)(const LtLibraryPointer&, const KernelRequest&);
using ProposePlain = std::vector<Proposal> (*)(const KernelRequest&);
using Prepare = std::unique_ptr<PreparedKernel> (*)(const LtLibraryPointer&, const KernelRequest&,
                                                    Multiplier);

/// cuBLASLt's kernel of an operator.
Kernel by_library(const char* name, const char* op, const LtLibraryPointer& library,
                  Factors factors, Refuse refuse, Propose propose, Prepare prepare) {
  return {
      .name = name,
      .op = op,
      .refuse = [=](const KernelRequest& r) -> Refusal {
        if (auto reason = refuse(r, library->gpu())) return reason;
        return refuse_without_algorithm(r, library, factors);
      },
      .propose = [=](const KernelRequest& r) { return propose(library, r); },
      .prepare = [=](const KernelRequest& r) { return prepare(library, r, Multiplier::library); }};
}

}  // namespace

void add_product_kernels(KernelList& list, const Gpu& gpu) {
  const auto library = std::make_shared<LtLibrary>(gpu);
  const auto plain = [library](Prepare prepare) {
    return [=](const KernelRequest& r) { return prepare(library, r, Multiplier::plain); };
  };
  list.push_back(by_library("cublas_lt.matmul", "MatMul", library, {0, 1}, refuse_product,
                            propose_matmul, prepare_matmul));
  list.push_back(
      {"cuda.matmul", "MatMul",
       [library](const KernelRequest& r) { return refuse_plain_matmul(r, library->gpu()); },
       propose_plain_matmul, plain(prepare_matmul)});
  list.push_back(by_library("cublas_lt.gemm", "Gemm", library, {0, 1}, refuse_gemm, propose_gemm,
                            prepare_gemm));
  add_row_major(
      list, "cuda.gemm", "Gemm",
      [library](const KernelRequest& r) -> Refusal {
        if (auto reason = refuse_gemm(r, library->gpu())) return reason;
        return refuse_many_axes(r);
      },
      plain(prepare_gemm));
  list.push_back(by_library("cublas_lt.gemm_sgd", "GemmSgd", library, {1, 2}, refuse_gemm_sgd,
                            propose_gemm_sgd, prepare_gemm_sgd));
  list.push_back({"cuda.gemm_sgd", "GemmSgd",
                  [library](const KernelRequest& r) -> Refusal {
                    if (auto reason = refuse_gemm_sgd(r, library->gpu())) return reason;
                    return refuse_many_axes(r);
                  },
                  propose_plain_gemm_sgd, plain(prepare_gemm_sgd)});
  add_row_major(
      list, "cublas_lt.packed_matmul", "PackedMatMul",
      [library](const KernelRequest& r) { return refuse_packed_without_algorithm(r, library); },
      [library](const KernelRequest& r) {
        return prepare_packed_matmul(library, r, Multiplier::library);
      });
  add_row_major(list, "cuda.packed_matmul", "PackedMatMul", refuse_packed,
                plain(prepare_packed_matmul));
  add_row_major(list, "cuda.unpack", "Unpack", refuse_packed,
                [gpu](const KernelRequest& r) { return prepare_unpack(r, gpu); });
}

}  // namespace tandem::cuda
