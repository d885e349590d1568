// The card's kernels for MatMul, Gemm and GemmSgd, and what each takes: by cuBLASLt float32,
// bfloat16 and float16, by a plain kernel the other element types.
#include <cstdint>
#include <limits>
#include <utility>

#include "kernels/cuda/products/own_kernels.h"
#include "kernels/cuda/products/prepared_products.h"

namespace tandem::cuda {
namespace {

using Kind = LayoutWish::Kind;

/// A product of more calls than these is rather copied into row-major operands.
constexpr std::int64_t most_calls = 16;

bool is_lt_type(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

bool is_long(const Operand& operand) {
  if (!operand.present) return false;
  for (const std::int64_t extent : operand.type.shape) {
    if (extent > std::numeric_limits<std::int32_t>::max()) return true;
  }
  return false;
}

std::optional<std::string> refuse_product(const KernelRequest& request, const CardContext& card) {
  const DType dtype = request.outputs[0].type.dtype;
  if (!is_lt_type(dtype)) {
    return "computes float32, float16 and bfloat16, not " + std::string(name_of(dtype));
  }
  if (dtype == DType::bfloat16 && card.properties.major > 0 && card.properties.major < 8) {
    return "bfloat16 needs a card of compute capability 8.0";
  }
  for (const Operand& operand : request.inputs) {
    if (is_long(operand)) return "an axis of more than 2^31 - 1 elements";
  }
  return std::nullopt;
}

std::optional<std::string> refuse_gemm(const KernelRequest& request, const CardContext& card) {
  if (auto reason = refuse_product(request, card)) return reason;
  if (request.inputs[1].type.rank() != 2) return "the second operand is not a matrix";
  if (request.inputs[0].type.rank() < 2) return "the first operand is a vector";
  return std::nullopt;
}

std::optional<std::string> refuse_gemm_sgd(const KernelRequest& request, const CardContext& card) {
  if (auto reason = refuse_product(request, card)) return reason;
  if (request.outputs[0].type.rank() != 2) return "the parameter is not a matrix";
  return std::nullopt;
}

std::optional<std::string> refuse_plain(const KernelRequest& request) {
  const TensorType& y = request.outputs[0].type;
  if (y.dtype == DType::boolean || is_lt_type(y.dtype)) {
    return "computes integers and float64, not " + std::string(name_of(y.dtype));
  }
  if (y.rank() > most_plain_axes) {
    return "more than " + std::to_string(most_plain_axes) + " axes";
  }
  return std::nullopt;
}

LayoutWish wish(Kind kind) { return {.kind = kind, .layout = {}}; }

/// The factors a and b as they lie where cuBLASLt reads them so, in few calls.
std::pair<LayoutWish, LayoutWish> factor_wishes(const Operand& a, const Operand& b,
                                                const Operand& y) {
  const bool a_fits = is_readable(a, true), b_fits = is_readable(b, false);
  if (a_fits && b_fits && is_writable(y, a.type.rank(), b.type.rank()) &&
      call_count(take_apart(a, b, y)) > most_calls) {
    return {wish(Kind::row_major), wish(Kind::row_major)};
  }
  return {wish(a_fits ? Kind::any : Kind::row_major), wish(b_fits ? Kind::any : Kind::row_major)};
}

std::vector<Proposal> propose_matmul(const KernelRequest& request) {
  const Operand &a = request.inputs[0], &b = request.inputs[1], &y = request.outputs[0];
  const auto [left, right] = factor_wishes(a, b, y);
  // Where there is nothing to sum, a pass over a row-major y writes zeros.
  const bool is_free = a.type.shape.back() > 0 && is_writable(y, a.type.rank(), b.type.rank());
  return {
      {.inputs = {left, right}, .outputs = {wish(is_free ? Kind::unit_stride : Kind::row_major)}}};
}

std::vector<Proposal> propose_gemm(const KernelRequest& request) {
  const auto [left, right] =
      factor_wishes(request.inputs[0], request.inputs[1], request.outputs[0]);
  const LayoutWish plain = wish(Kind::row_major);
  return {{.inputs = {left, right, plain, plain}, .outputs = {plain}}};
}

std::vector<Proposal> propose_gemm_sgd(const KernelRequest& request) {
  const auto [left, right] =
      factor_wishes(request.inputs[1], request.inputs[2], request.outputs[0]);
  const LayoutWish dense = wish(Kind::dense);
  return {{.inputs = {dense, left, right, wish(Kind::row_major)}, .outputs = {dense}}};
}

std::vector<Proposal> propose_plain(const KernelRequest&) {
  return {{.inputs = {wish(Kind::any), wish(Kind::any)}, .outputs = {wish(Kind::any)}}};
}

}  // namespace

void add_product_kernels(KernelList& list, const Card& card) {
  const auto library = std::make_shared<LtLibrary>(card);
  list.push_back(
      {.name = "cublas_lt.matmul",
       .op = "MatMul",
       .refuse = [card](const KernelRequest& r) { return refuse_product(r, *card); },
       .propose = propose_matmul,
       .prepare = [library](const KernelRequest& r) { return prepare_matmul(library, r); }});
  list.push_back(
      {.name = "cuda.matmul",
       .op = "MatMul",
       .refuse = refuse_plain,
       .propose = propose_plain,
       .prepare = [card](const KernelRequest& r) { return prepare_plain_matmul(card, r); }});
  list.push_back(
      {.name = "cublas_lt.gemm",
       .op = "Gemm",
       .refuse = [card](const KernelRequest& r) { return refuse_gemm(r, *card); },
       .propose = propose_gemm,
       .prepare = [library](const KernelRequest& r) { return prepare_gemm(library, r); }});
  list.push_back(
      {.name = "cublas_lt.gemm_sgd",
       .op = "GemmSgd",
       .refuse = [card](const KernelRequest& r) { return refuse_gemm_sgd(r, *card); },
       .propose = propose_gemm_sgd,
       .prepare = [library](const KernelRequest& r) { return prepare_gemm_sgd(library, r); }});
}

}  // namespace tandem::cuda
