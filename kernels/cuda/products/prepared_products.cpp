#include "kernels/cuda/products/prepared_products.h"

#include <cassert>
#include <optional>
#include <utility>

#include "engine/graph/error.h"
#include "kernels/cuda/products/own_kernels.h"

namespace tandem::cuda {
namespace {

/// In front of the library's workspace: alpha and beta of an update.
constexpr std::size_t scale_bytes = 256;

std::unique_ptr<LtProduct> make_product(const LtLibraryPointer& library,
                                        const ColumnMajorProduct& product,
                                        const LtSettings& settings) {
  auto made = LtProduct::make(library, product, settings);
  if (made) return made;
  Diagnostic d;
  d.message = "cuBLASLt has no algorithm for this product";
  d.path = settings.path;
  d.got = std::string(name_of(settings.dtype)) + ", " + std::to_string(product.batch) + " x [" +
          std::to_string(product.result.rows) + ", " + std::to_string(product.result.columns) +
          "] on " + library->card().properties.name;
  d.fix = "let the host compute it: the rule { at = \"" + settings.path + "\", run = \"cpu\" }";
  throw Error(ErrorKind::runtime, std::move(d));
}

bool is_empty(const Product& p) { return p.m == 0 || p.n == 0 || p.count() == 0; }

LtSettings settings_of(const KernelRequest& request) {
  return {.dtype = request.outputs[0].type.dtype, .path = request.node->path};
}

/// Of a row-major y.
FinishArguments finish_of(const TensorType& y, bool is_sum) {
  FinishArguments finish;
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
  GemmKernel(LtLibraryPointer library, const KernelRequest& request)
      : library_(std::move(library)) {
    const Operand& y = request.outputs[0];
    const Product p = take_apart(request.inputs[0], request.inputs[1], y);
    has_bias_ = request.inputs.size() > 2 && request.inputs[2].present;
    finish_ = finish_of(y.type, p.k > 0);
    finish_.activation = activation_of(request.attributes());
    if (is_empty(p) || p.k == 0) return;
    LtSettings settings = settings_of(request);
    settings.alpha = static_cast<float>(request.attributes().number("alpha"));
    const ColumnMajorProduct product = column_major(p);
    assert(product.swapped && "bias runs along the rows of the result");
    if (const auto epilogue = epilogue_of(finish_.activation, has_bias_)) {
      settings.epilogue = *epilogue;
      product_ = LtProduct::make(library_, product, settings);
    }
    finishes_ = product_ == nullptr;
    if (finishes_) {
      settings.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
      product_ = make_product(library_, product, settings);
    }
    workspace_bytes = product_->workspace_bytes();
  }

  void run(const KernelArguments& x) noexcept override {
    const void* const bias = has_bias_ ? x.inputs[2] : nullptr;
    if (product_) {
      product_->run({.a = x.inputs[0],
                     .b = x.inputs[1],
                     .y = x.outputs[0],
                     .bias = bias,
                     .workspace = x.workspace,
                     .queue = x.queue});
    }
    if (!finishes_) return;
    FinishArguments finish = finish_;
    finish.y = x.outputs[0];
    finish.bias = bias;
    if (finish.activation == Activation::relu_grad) finish.multiplier = x.inputs[3];
    finish_product(library_->card(), finish, x.queue);
  }

 private:
  LtLibraryPointer library_;
  std::unique_ptr<LtProduct> product_;  // null: there is nothing to sum
  FinishArguments finish_;
  bool has_bias_ = false, finishes_ = true;
};

/// new_master = master + (-alpha lr) a b with beta = 1; lr lies on the card, so both scales do.
class GemmSgdKernel final : public PreparedKernel {
 public:
  GemmSgdKernel(LtLibraryPointer library, const KernelRequest& request)
      : library_(std::move(library)), bytes_(request.outputs[0].type.bytes()) {
    const Product p = take_apart(request.inputs[1], request.inputs[2], request.outputs[0]);
    if (is_empty(p) || p.k == 0) return;
    alpha_ = -static_cast<float>(request.attributes().number("alpha"));
    LtSettings settings = settings_of(request);
    settings.accumulate = true;
    settings.scales_on_card = true;
    product_ = make_product(library_, column_major(p), settings);
    workspace_bytes = scale_bytes + product_->workspace_bytes();
  }

  void run(const KernelArguments& x) noexcept override {
    CardContext& card = library_->card();
    if (!product_) {
      if (x.outputs[0] == x.inputs[0] || bytes_ == 0) return;
      const cudaError_t error =
          card.runtime->copy(x.outputs[0], x.inputs[0], bytes_, static_cast<cudaStream_t>(x.queue));
      if (error != cudaSuccess) card.fail("GemmSgd's copy", card.runtime->error_text(error));
      return;
    }
    auto* const scales = static_cast<float*>(x.workspace);
    scale_update(card, alpha_, static_cast<const float*>(x.inputs[3]), scales, x.queue);
    product_->run({.a = x.inputs[1],
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
  std::unique_ptr<LtProduct> product_;  // null: there is nothing to sum
  float alpha_ = 0;
};

}  // namespace

std::unique_ptr<PreparedKernel> prepare_matmul(const LtLibraryPointer& library,
                                               const KernelRequest& request) {
  const Operand& y = request.outputs[0];
  const Product p = take_apart(request.inputs[0], request.inputs[1], y);
  if (is_empty(p)) return prepared([](const KernelArguments&) {});
  if (p.k == 0) {
    return prepared([library, finish = finish_of(y.type, false)](const KernelArguments& x) {
      FinishArguments zeros = finish;
      zeros.y = x.outputs[0];
      finish_product(library->card(), zeros, x.queue);
    });
  }
  auto product = make_product(library, column_major(p), settings_of(request));
  const std::size_t workspace = product->workspace_bytes();
  return prepared(
      [product = std::move(product)](const KernelArguments& x) {
        product->run({.a = x.inputs[0],
                      .b = x.inputs[1],
                      .y = x.outputs[0],
                      .workspace = x.workspace,
                      .queue = x.queue});
      },
      workspace);
}

std::unique_ptr<PreparedKernel> prepare_gemm(const LtLibraryPointer& library,
                                             const KernelRequest& request) {
  return std::make_unique<GemmKernel>(library, request);
}

std::unique_ptr<PreparedKernel> prepare_gemm_sgd(const LtLibraryPointer& library,
                                                 const KernelRequest& request) {
  return std::make_unique<GemmSgdKernel>(library, request);
}

std::unique_ptr<PreparedKernel> prepare_plain_matmul(const Card& card,
                                                     const KernelRequest& request) {
  return prepared([card, dtype = request.outputs[0].type.dtype,
                   p = take_apart(request.inputs[0], request.inputs[1], request.outputs[0])](
                      const KernelArguments& x) {
    plain_product(*card, p, dtype, x.inputs[0], x.inputs[1], x.outputs[0], x.queue);
  });
}

}  // namespace tandem::cuda
