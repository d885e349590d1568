#include "kernels/cuda/products/prepared_products.h"

#include <cassert>
#include <optional>
#include <utility>

#include "engine/graph/error.h"
#include "kernels/cuda/launching.h"
#include "kernels/cuda/products/own_kernels.h"
#include "kernels/cuda/products/packed_numbers.h"

namespace tandem::cuda {
namespace {

/// In front of the library's workspace: alpha and beta of an update.
constexpr std::size_t scale_bytes = 256;

/// A product that is not empty and has something to sum, by cuBLASLt or by plain sums.
class SomeProduct {
 public:
  SomeProduct() = default;
  SomeProduct(const LtLibraryPointer& library, const Product& product, const LtSettings& settings,
              Multiplier by)
      : library_(library), plain_(product), settings_(settings) {
    if (by == Multiplier::library)
      by_library_ = LtProduct::make(library, column_major(product), settings);
    if (!by_library_ && !has_plain()) {
      throw Error(ErrorKind::runtime,
                  Diagnostic{.message = "no kernel multiplies these operands",
                             .path = settings.path,
                             .got = std::to_string(product.axes.size()) +
                                    " batch axes, and no algorithm of cuBLASLt",
                             .fix = "let the host compute it: the rule { at = \"" + settings.path +
                                    "\", run = \"cpu\" }"});
    }
  }

  explicit operator bool() const { return library_ != nullptr; }
  bool has_library() const { return by_library_ != nullptr; }
  std::size_t workspace_bytes() const { return by_library_ ? by_library_->workspace_bytes() : 0; }
  /// False where it was made by plain sums, which have no epilogue.
  bool run(const LtArguments& x) const noexcept {
    if (by_library_ && by_library_->run(x)) return true;
    if (!has_plain()) {
      library_->gpu().fail("cublasLtMatmul", "no algorithm for operands at these addresses");
      return true;
    }
    const PlainArguments plain{.a = x.a,
                               .b = x.b,
                               .y = x.y,
                               .c = settings_.accumulate ? x.c : nullptr,
                               .alpha = settings_.alpha,
                               .scales = settings_.scales_on_gpu ? x.scales : nullptr};
    plain_product(library_->gpu(), plain_, settings_.dtype, plain, x.queue);
    return false;
  }

 private:
  bool has_plain() const { return plain_.axes.size() <= most_plain_axes; }

  LtLibraryPointer library_;
  Product plain_;
  LtSettings settings_;
  std::unique_ptr<LtProduct> by_library_;
};

bool is_empty(const Product& p) { return p.m == 0 || p.n == 0 || p.count() == 0; }

LtSettings settings_of(const KernelRequest& request) {
  return {.dtype = request.outputs[0].type.dtype, .path = request.node->path};
}

/// What finishes a product with a row-major y.
ProductFinish finish_of(const TensorType& y, bool is_sum) {
  ProductFinish finish;
  finish.dtype = y.dtype;
  finish.columns = y.shape.empty() ? 1 : y.shape.back();
  finish.rows = finish.columns == 0 ? 0 : y.elements() / finish.columns;
  finish.is_sum = is_sum;
  return finish;
}

/// What cuBLASLt can do to the sums: its Gelu is the tanh form, and its ReluGrad wants a bit mask.
std::optional<cublasLtEpilogue_t> epilogue_of(Activation activation, bool has_bias) {
  switch (activation) {
    case Activation::none:
      return has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    case Activation::relu:
      return has_bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case Activation::gelu_tanh:
      return has_bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case Activation::gelu:
    case Activation::relu_grad:
      break;
  }
  return std::nullopt;
}

/// The product with the epilogue where cuBLASLt has it, else followed by a pass of ours.
class GemmKernel final : public PreparedKernel {
 public:
  GemmKernel(LtLibraryPointer library, const KernelRequest& request, Multiplier by)
      : library_(std::move(library)) {
    const Operand& y = request.outputs[0];
    const Product p = take_apart(request.inputs[0], request.inputs[1], y);
    has_bias_ = request.inputs.size() > 2 && request.inputs[2].present;
    finish_ = finish_of(y.type, p.k > 0);
    finish_.activation = activation_of(request.attributes());
    if (is_empty(p) || p.k == 0) return;
    LtSettings settings = settings_of(request);
    settings.alpha = static_cast<float>(request.attributes().number("alpha"));
    assert((p.y_n == 1 || p.n == 1) && "bias runs along the rows of cuBLASLt's result");
    finishes_ = finish_.activation != Activation::none || has_bias_;
    const auto epilogue = epilogue_of(finish_.activation, has_bias_);
    if (epilogue && by == Multiplier::library) {
      settings.epilogue = *epilogue;
      product_ = SomeProduct(library_, p, settings, by);
      has_epilogue_ = product_.has_library();
    }
    if (!has_epilogue_) {
      settings.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
      product_ = SomeProduct(library_, p, settings, by);
    }
    workspace_bytes = product_.workspace_bytes();
  }

  void run(const KernelArguments& x) noexcept override {
    const void* const bias = has_bias_ ? x.inputs[2] : nullptr;
    if (product_) {
      const bool by_library = product_.run({.a = x.inputs[0],
                                            .b = x.inputs[1],
                                            .y = x.outputs[0],
                                            .bias = bias,
                                            .workspace = x.workspace,
                                            .queue = x.queue});
      if (by_library && has_epilogue_) return;
    }
    if (!finishes_) return;
    ProductFinish finish = finish_;
    finish.y = x.outputs[0];
    finish.bias = bias;
    if (finish.activation == Activation::relu_grad) finish.multiplier = x.inputs[3];
    finish_product(library_->gpu(), finish, x.queue);
  }

 private:
  LtLibraryPointer library_;
  SomeProduct product_;  // empty: there is nothing to sum
  ProductFinish finish_;
  bool has_bias_ = false, finishes_ = true;  // a pass of ours, unless cuBLASLt's epilogue did it
  bool has_epilogue_ = false;
};

/// new_master = master + (-alpha lr) a b with beta = 1; lr lies on the GPU, so both scales do.
class GemmSgdKernel final : public PreparedKernel {
 public:
  GemmSgdKernel(LtLibraryPointer library, const KernelRequest& request, Multiplier by)
      : library_(std::move(library)), bytes_(request.outputs[0].type.bytes()) {
    const Product p = take_apart(request.inputs[1], request.inputs[2], request.outputs[0]);
    if (is_empty(p) || p.k == 0) return;
    alpha_ = -static_cast<float>(request.attributes().number("alpha"));
    LtSettings settings = settings_of(request);
    settings.accumulate = true;
    settings.scales_on_gpu = true;
    product_ = SomeProduct(library_, p, settings, by);
    workspace_bytes = scale_bytes + product_.workspace_bytes();
  }

  void run(const KernelArguments& x) noexcept override {
    GpuContext& gpu = library_->gpu();
    if (!product_) {
      if (x.outputs[0] == x.inputs[0] || bytes_ == 0) return;
      const cudaError_t error =
          gpu.runtime->copy(x.outputs[0], x.inputs[0], bytes_, static_cast<cudaStream_t>(x.queue));
      if (error != cudaSuccess) gpu.fail("GemmSgd's copy", gpu.runtime->error_text(error));
      return;
    }
    auto* const scales = static_cast<float*>(x.workspace);
    scale_update(gpu, alpha_, static_cast<const float*>(x.inputs[3]), scales, x.queue);
    product_.run({.a = x.inputs[1],
                  .b = x.inputs[2],
                  .c = x.inputs[0],
                  .y = x.outputs[0],
                  .scales = scales,
                  .workspace = static_cast<char*>(x.workspace) + scale_bytes,
                  .queue = x.queue});
  }

 private:
  LtLibraryPointer library_;
  std::size_t bytes_;
  SomeProduct product_;  // empty: there is nothing to sum
  float alpha_ = 0;
};

constexpr std::int64_t strip_numbers = std::int64_t{1} << 24;  // 64 MiB
constexpr std::int64_t strip_unit = 64;  // columns of y: addresses keep their alignment

/// y[..., n] = x[..., k] times the numbers of a packed matrix of n x k (transposed) or k x n.
struct PackedShape {
  std::int64_t n = 0, k = 0, strip = 1;
  bool transposed = false;

  explicit PackedShape(const KernelRequest& request)
      : transposed(request.attributes().flag("transposed")) {
    const Packing packing = packing_of(request.attributes(), request.inputs[1].type);
    n = transposed ? packing.rows : packing.columns;
    k = transposed ? packing.columns : packing.rows;
    const std::int64_t units = strip_numbers / std::max<std::int64_t>(k, 1) / strip_unit;
    strip = std::min(std::max<std::int64_t>(units, 1) * strip_unit, std::max<std::int64_t>(n, 1));
  }

  /// For this many columns of y.
  StripOperands operands(const KernelRequest& request, std::int64_t columns) const {
    StripOperands of{request.inputs[0], request.inputs[0], request.outputs[0]};
    of.x.layout = row_major(of.x.type.shape);
    of.strip.type.shape = {k, columns};
    of.strip.layout = row_major({k, columns});
    if (transposed) of.strip.layout.strides = {1, k};
    of.y.layout = row_major(of.y.type.shape);
    of.y.type.shape.back() = columns;
    return of;
  }
  PackedPart part(std::int64_t first, std::int64_t columns) const {
    if (transposed) return {first, columns, 0, k};
    return {0, k, first, columns};
  }
};

class PackedMatMulKernel final : public PreparedKernel {
 public:
  PackedMatMulKernel(LtLibraryPointer library, const KernelRequest& request, Multiplier by)
      : library_(std::move(library)),
        shape_(request),
        matrix_(packed_operand(request, 1)),
        has_zeros_(request.is_present(3)),
        bytes_(request.outputs[0].type.bytes()) {
    if (bytes_ == 0 || shape_.k == 0) return;
    const auto product = [&](std::int64_t columns) {
      const StripOperands of = shape_.operands(request, columns);
      return SomeProduct(library_, take_apart(of.x, of.strip, of.y), settings_of(request), by);
    };
    whole_ = product(shape_.strip);
    const std::int64_t rest = shape_.n % shape_.strip;
    if (rest > 0) last_ = product(rest);
    strip_bytes_ = padded(static_cast<std::size_t>(shape_.strip * shape_.k) * sizeof(float));
    workspace_bytes = strip_bytes_ + std::max(whole_.workspace_bytes(), last_.workspace_bytes());
  }

  void run(const KernelArguments& x) noexcept override {
    GpuContext& gpu = library_->gpu();
    auto* const y = static_cast<float*>(x.outputs[0]);
    if (!whole_) return zero_bytes(gpu, y, bytes_, x.queue);
    auto* const strip = static_cast<float*>(x.workspace);
    const PackedMatrix matrix = at_addresses(matrix_, x, 1, has_zeros_);
    for (std::int64_t first = 0; first < shape_.n; first += shape_.strip) {
      const std::int64_t columns = std::min(shape_.strip, shape_.n - first);
      unpack_numbers(gpu, matrix, shape_.part(first, columns), strip, x.queue);
      const SomeProduct& product = columns == shape_.strip ? whole_ : last_;
      product.run({.a = x.inputs[0],
                   .b = strip,
                   .y = y + first,
                   .workspace = static_cast<char*>(x.workspace) + strip_bytes_,
                   .queue = x.queue});
    }
  }

 private:
  LtLibraryPointer library_;
  PackedShape shape_;
  PackedMatrix matrix_;
  bool has_zeros_;
  std::size_t bytes_, strip_bytes_ = 0;
  SomeProduct whole_, last_;  // empty: there is nothing to sum, and no last strip
};

}  // namespace

std::unique_ptr<PreparedKernel> prepare_packed_matmul(const LtLibraryPointer& library,
                                                      const KernelRequest& request, Multiplier by) {
  return std::make_unique<PackedMatMulKernel>(library, request, by);
}

StripOperands strip_operands(const KernelRequest& request) {
  const PackedShape shape(request);
  return shape.operands(request, shape.strip);
}

std::unique_ptr<PreparedKernel> prepare_matmul(const LtLibraryPointer& library,
                                               const KernelRequest& request, Multiplier by) {
  const Operand& y = request.outputs[0];
  const Product p = take_apart(request.inputs[0], request.inputs[1], y);
  if (is_empty(p)) return prepared([](const KernelArguments&) {});
  if (p.k == 0 && by == Multiplier::library) {
    return prepared([library, finish = finish_of(y.type, false)](const KernelArguments& x) {
      ProductFinish zeros = finish;
      zeros.y = x.outputs[0];
      finish_product(library->gpu(), zeros, x.queue);
    });
  }
  SomeProduct product(library, p, settings_of(request), by);
  const std::size_t workspace = product.workspace_bytes();
  return prepared(
      [product = std::move(product)](const KernelArguments& x) {
        product.run({.a = x.inputs[0],
                     .b = x.inputs[1],
                     .y = x.outputs[0],
                     .workspace = x.workspace,
                     .queue = x.queue});
      },
      workspace);
}

std::unique_ptr<PreparedKernel> prepare_gemm(const LtLibraryPointer& library,
                                             const KernelRequest& request, Multiplier by) {
  return std::make_unique<GemmKernel>(library, request, by);
}

std::unique_ptr<PreparedKernel> prepare_gemm_sgd(const LtLibraryPointer& library,
                                                 const KernelRequest& request, Multiplier by) {
  return std::make_unique<GemmSgdKernel>(library, request, by);
}

}  // namespace tandem::cuda
