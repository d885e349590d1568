// MatMul, Gemm and GemmSgd: strides and batches taken apart into plans of
// kernels/cpu/products/gemm.h.
#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/products/products.h"

namespace tandem {
namespace {

using Strides = std::vector<std::int64_t>;

/// One batch axis: extent and the strides of a, b, y and ReluGrad's multiplier (0 where an operand
/// is broadcast or absent).
struct Axis {
  std::int64_t extent, a, b, y, multiplier;
};

/// A MatMul as a list of equal products.
struct Batched {
  GemmShape shape;
  std::vector<Axis> axes;  // outermost first; empty: one product

  std::int64_t count() const {
    std::int64_t n = 1;
    for (const Axis& axis : axes) n *= axis.extent;
    return n;
  }
};

/// Shape and strides of numpy's view of an operand of MatMul: 1-D operands get their second axis.
struct Matrices {
  Shape shape;
  Strides strides;
};

Matrices matrices(const Operand& operand, bool left) {
  Matrices m{operand.type.shape, operand.layout.strides};
  if (m.shape.size() == 1) {
    const auto at = left ? 0 : 1;
    m.shape.insert(m.shape.begin() + at, 1);
    m.strides.insert(m.strides.begin() + at, 0);
  }
  return m;
}

std::int64_t stride_at(const Matrices& m, std::size_t rank, std::size_t axis) {
  const std::size_t missing = rank - m.shape.size();
  if (axis < missing || m.shape[axis - missing] == 1) return 0;
  return m.strides[axis - missing];
}

/// `multiplier` has y's shape, and its unit stride where y has it; null: none.
Batched take_apart(const Operand& a_operand, const Operand& b_operand, const Operand& y_operand,
                   const Operand* multiplier = nullptr) {
  const Matrices a = matrices(a_operand, true), b = matrices(b_operand, false);
  Matrices y{y_operand.type.shape, y_operand.layout.strides};
  if (a_operand.type.rank() == 1) {
    const auto at =
        static_cast<std::ptrdiff_t>(y.shape.size()) - (b_operand.type.rank() == 1 ? 0 : 1);
    y.shape.insert(y.shape.begin() + at, 1);
    y.strides.insert(y.strides.begin() + at, 0);
  }
  if (b_operand.type.rank() == 1) {
    y.shape.push_back(1);
    y.strides.push_back(0);
  }
  const std::size_t rank = y.shape.size();
  assert(multiplier == nullptr || multiplier->type.rank() == rank);
  const Strides none(rank, 0);
  const Strides& factor = multiplier != nullptr ? multiplier->layout.strides : none;
  Batched result;
  GemmShape& s = result.shape;
  s.m = y.shape[rank - 2];
  s.n = y.shape[rank - 1];
  s.k = a.shape.back();
  s.a_m = a.strides[a.strides.size() - 2];
  s.a_k = a.strides.back();
  s.b_k = b.strides[b.strides.size() - 2];
  s.b_n = b.strides.back();
  s.c_m = y.strides[rank - 2];
  s.c_n = y.strides[rank - 1];
  s.multiplier_m = factor[rank - 2];
  s.multiplier_n = factor[rank - 1];
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    if (y.shape[i] == 1) continue;
    result.axes.push_back(
        {y.shape[i], stride_at(a, rank, i), stride_at(b, rank, i), y.strides[i], factor[i]});
  }
  // Axes that b does not have become rows where the strides go on.
  while (!result.axes.empty() && result.axes.back().b == 0) {
    const Axis& axis = result.axes.back();
    if (s.m == 1) {
      s.a_m = axis.a;
      s.c_m = axis.y;
      s.multiplier_m = axis.multiplier;
    } else if (axis.a != s.a_m * s.m || axis.y != s.c_m * s.m ||
               axis.multiplier != s.multiplier_m * s.m) {
      break;
    }
    s.m *= axis.extent;
    result.axes.pop_back();
  }
  // Few rows a product and many products, as where sequences come first: the longest axis is rows.
  Axis* longest = nullptr;
  for (Axis& axis : result.axes) {
    if (axis.b == 0 && (longest == nullptr || axis.extent > longest->extent)) longest = &axis;
  }
  // One of y's strides has to stay 1, as does the multiplier's stride along the same axis.
  if (longest != nullptr && longest->extent > s.m && s.c_n == 1) {
    std::swap(longest->extent, s.m);
    std::swap(longest->a, s.a_m);
    std::swap(longest->y, s.c_m);
    std::swap(longest->multiplier, s.multiplier_m);
  }
  // An axis of extent 1 may have any stride: it gets one that suits.
  if (s.m == 1) {
    s.a_m = s.a_k == 1 ? s.k : 1;
    s.c_m = s.c_n == 1 ? s.n : 1;
  }
  if (s.n == 1) {
    s.b_n = s.b_k == 1 ? s.k : 1;
    if (s.c_m != 1) s.c_n = 1;
  }
  if (s.m == 1) s.multiplier_m = s.c_m;
  if (s.n == 1) s.multiplier_n = s.c_n;
  if (s.k == 1) {
    s.a_k = s.a_m == 1 ? s.m : 1;
    s.b_k = s.b_n == 1 ? s.n : 1;
  }
  return result;
}

/// Runs a Batched: items in parallel where there are enough, else each on the whole team.
class ProductKernel : public PreparedKernel {
 public:
  ProductKernel(Batched batched, const DeviceFacts& facts) : batched_(std::move(batched)) {
    GemmShape& s = batched_.shape;
    const std::int64_t count = batched_.count();
    if (s.c_m != 1 && s.c_n != 1) {  // neither axis of y has neighbours: through a dense copy
      scatter_m_ = s.c_m;
      scatter_n_ = s.c_n;
      assert(s.multiplier_m == 0 && s.multiplier_n == 0);  // it would have no neighbours either
      s.c_m = s.n;
      s.c_n = 1;
    }
    const std::int64_t flops = 2 * s.m * s.n * s.k * count;
    parts_ = count >= facts.threads ? parts_for(facts.threads, flops, grain_flops) : 1;
    plan_ = plan_gemm(s, parts_ > 1 || count >= facts.threads ? 1 : facts.threads, isa_of(facts));
    dense_bytes_ = scatter_n_ == 0 ? 0 : static_cast<std::size_t>((s.m * s.n * 4 + 63) / 64 * 64);
    workspace_bytes = (plan_.workspace_bytes() + dense_bytes_) * static_cast<std::size_t>(parts_);
  }

 protected:
  /// a and b from input `first` on, c the output.
  static GemmArguments operands(const KernelArguments& x, std::size_t first) {
    return {.a = static_cast<const float*>(x.inputs[first]),
            .b = static_cast<const float*>(x.inputs[first + 1]),
            .c = static_cast<float*>(x.outputs[0])};
  }

  void run_products(const GemmArguments& arguments, void* workspace) const {
    const std::int64_t count = batched_.count();
    if (count == 0 || batched_.shape.m == 0 || batched_.shape.n == 0) return;
    parallel_parts(parts_, [&](int part) {
      const Range range = part_of(count, part, parts_);
      char* own = static_cast<char*>(workspace) +
                  (plan_.workspace_bytes() + dense_bytes_) * static_cast<std::size_t>(part);
      for (std::int64_t i = range.begin; i < range.end; ++i) run_item(arguments, i, own);
    });
  }

  const GemmShape& shape() const { return batched_.shape; }

 private:
  void run_item(GemmArguments x, std::int64_t item, char* workspace) const {
    for (std::size_t i = batched_.axes.size(); i-- > 0;) {
      const Axis& axis = batched_.axes[i];
      const std::int64_t index = item % axis.extent;
      item /= axis.extent;
      x.a += index * axis.a;
      x.b += index * axis.b;
      x.c += index * axis.y;
      if (x.multiplier != nullptr) x.multiplier += index * axis.multiplier;
    }
    if (scatter_n_ == 0) {
      run_gemm(plan_, x, workspace);
      return;
    }
    float* const to = x.c;
    x.c = reinterpret_cast<float*>(workspace + plan_.workspace_bytes());
    run_gemm(plan_, x, workspace);
    const GemmShape& s = batched_.shape;
    for (std::int64_t i = 0; i < s.m; ++i) {
      for (std::int64_t j = 0; j < s.n; ++j) to[i * scatter_m_ + j * scatter_n_] = x.c[i * s.n + j];
    }
  }

  Batched batched_;
  GemmPlan plan_;
  int parts_ = 1;
  std::int64_t scatter_m_ = 0, scatter_n_ = 0;  // y's strides where the product is copied into it
  std::size_t dense_bytes_ = 0;
};

class MatMulKernel final : public ProductKernel {
 public:
  using ProductKernel::ProductKernel;
  void run(const KernelArguments& x) noexcept override {
    run_products(operands(x, 0), x.workspace);
  }
};

class GemmKernel final : public ProductKernel {
 public:
  GemmKernel(Batched batched, const KernelRequest& request)
      : ProductKernel(std::move(batched), *request.facts),
        alpha_(static_cast<float>(request.attributes().number("alpha"))),
        activation_(activation_of(request.attributes())),
        has_bias_(request.inputs.size() > 2 && request.inputs[2].present) {}

  void run(const KernelArguments& x) noexcept override {
    GemmArguments g = operands(x, 0);
    if (has_bias_) g.bias = static_cast<const float*>(x.inputs[2]);
    if (activation_ == Activation::relu_grad) {
      g.multiplier = static_cast<const float*>(x.inputs[3]);
    }
    g.alpha = alpha_;
    g.activation = activation_;
    run_products(g, x.workspace);
  }

 private:
  float alpha_;
  Activation activation_;
  bool has_bias_;
};

class GemmSgdKernel final : public ProductKernel {
 public:
  GemmSgdKernel(Batched batched, const KernelRequest& request)
      : ProductKernel(std::move(batched), *request.facts),
        alpha_(static_cast<float>(request.attributes().number("alpha"))),
        bytes_(request.outputs[0].type.bytes()) {}

  void run(const KernelArguments& x) noexcept override {
    if (x.outputs[0] != x.inputs[0]) std::memcpy(x.outputs[0], x.inputs[0], bytes_);
    GemmArguments g = operands(x, 1);
    g.alpha = -alpha_ * *static_cast<const float*>(x.inputs[3]);
    g.accumulate = true;
    run_products(g, x.workspace);
  }

 private:
  float alpha_;
  std::size_t bytes_;
};

LayoutConstraint constraint(LayoutConstraint::Kind kind) { return {.kind = kind, .layout = {}}; }

std::vector<Proposal> propose_matmul(const KernelRequest&) {
  const LayoutConstraint any = constraint(LayoutConstraint::Kind::unit_stride);
  return {{.inputs = {any, any}, .outputs = {any}}};
}

std::unique_ptr<PreparedKernel> prepare_matmul(const KernelRequest& request) {
  return std::make_unique<MatMulKernel>(
      take_apart(request.inputs[0], request.inputs[1], request.outputs[0]), *request.facts);
}

std::vector<Proposal> propose_gemm(const KernelRequest&) {
  const LayoutConstraint any = constraint(LayoutConstraint::Kind::unit_stride),
                         plain = constraint(LayoutConstraint::Kind::row_major);
  return {{.inputs = {any, any, plain, plain}, .outputs = {plain}}};
}

std::optional<std::string> refuse_gemm(const KernelRequest& request) {
  if (auto reason = refuse_unless_float32(request)) return reason;
  if (request.inputs[1].type.rank() != 2) return "the second operand is not a matrix";
  if (request.inputs[0].type.rank() < 2) return "the first operand is a vector";
  const bool masked = activation_of(request.attributes()) == Activation::relu_grad;
  const bool given = request.inputs.size() > 3 && request.inputs[3].present;
  if (masked != given) return "only ReluGrad has a multiplier";
  if (masked && request.inputs[3].type.shape != request.outputs[0].type.shape) {
    return "the multiplier is broadcast";
  }
  return std::nullopt;
}

std::unique_ptr<PreparedKernel> prepare_gemm(const KernelRequest& request) {
  const bool masked = request.inputs.size() > 3 && request.inputs[3].present;
  Batched batched = take_apart(request.inputs[0], request.inputs[1], request.outputs[0],
                               masked ? &request.inputs[3] : nullptr);
  batched.shape.bias_n = 1;
  return std::make_unique<GemmKernel>(std::move(batched), request);
}

std::vector<Proposal> propose_gemm_sgd(const KernelRequest&) {
  const LayoutConstraint any = constraint(LayoutConstraint::Kind::unit_stride),
                         dense = constraint(LayoutConstraint::Kind::dense);
  return {{.inputs = {dense, any, any, constraint(LayoutConstraint::Kind::row_major)},
           .outputs = {dense}}};
}

std::optional<std::string> refuse_gemm_sgd(const KernelRequest& request) {
  if (auto reason = refuse_unless_float32(request)) return reason;
  if (request.outputs[0].type.rank() != 2) return "the parameter is not a matrix";
  return std::nullopt;
}

std::unique_ptr<PreparedKernel> prepare_gemm_sgd(const KernelRequest& request) {
  return std::make_unique<GemmSgdKernel>(
      take_apart(request.inputs[1], request.inputs[2], request.outputs[0]), request);
}

}  // namespace

void add_matmul_kernels(KernelList& list) {
  list.push_back({"simd.matmul", "MatMul",
                  [](const KernelRequest& r) { return refuse_unless_float32(r); }, propose_matmul,
                  prepare_matmul});
  list.push_back({"simd.gemm", "Gemm", refuse_gemm, propose_gemm, prepare_gemm});
  list.push_back({"simd.gemm_sgd", "GemmSgd", refuse_gemm_sgd, propose_gemm_sgd, prepare_gemm_sgd});
}

}  // namespace tandem
