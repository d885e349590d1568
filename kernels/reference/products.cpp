// The products that lowering makes: MatMul with an epilogue, and with the update it feeds.
#include "kernels/reference/products.h"

#include "engine/operators/activation.h"

namespace tandem::reference {
namespace {

double activated(Activation activation, double y) {
  switch (activation) {
    case Activation::relu:
      return scalar::relu(y);
    case Activation::gelu:
      return scalar::gelu(y);
    case Activation::gelu_tanh:
      return scalar::gelu_tanh(y);
    case Activation::relu_grad:  // the multiplier does it
    case Activation::none:
      break;
  }
  return y;
}

// Inputs a, b, bias?, multiplier?.
template <class T>
std::unique_ptr<PreparedKernel> prepare_gemm(const KernelRequest& request) {
  const Operand& result = request.outputs[0];
  const bool has_bias = request.inputs[2].present, has_multiplier = request.inputs[3].present;
  const std::int64_t bias_stride = has_bias ? request.inputs[2].layout.strides[0] : 0;
  const double alpha = request.attributes().number("alpha");
  const Activation activation = activation_of(request.attributes());
  return prepared([=, w = product_walk(request.inputs[0], request.inputs[1], result,
                                       has_multiplier ? request.inputs[3] : result)](
                      const KernelArguments& arguments) mutable {
    const T* bias = static_cast<const T*>(arguments.inputs[2]);
    const T* multiplier = static_cast<const T*>(arguments.inputs[3]);
    T* y = static_cast<T*>(arguments.outputs[0]);
    w.template run<T>(arguments.inputs[0], arguments.inputs[1],
                      [&](std::int64_t at, std::int64_t more, std::int64_t last, double sum) {
                        double value = alpha * sum;
                        if (has_bias) value += bias[last * bias_stride];
                        if (has_multiplier && multiplier[more] <= T(0)) value = 0;
                        y[at] = static_cast<T>(activated(activation, value));
                      });
  });
}

// Inputs master, a, b, lr; the output is master's storage.
template <class T>
std::unique_ptr<PreparedKernel> prepare_gemm_sgd(const KernelRequest& request) {
  const double alpha = request.attributes().number("alpha");
  return prepared(
      [alpha, w = product_walk(request.inputs[1], request.inputs[2], request.outputs[0],
                               request.inputs[0])](const KernelArguments& arguments) mutable {
        const T* master = static_cast<const T*>(arguments.inputs[0]);
        const double rate = alpha * *static_cast<const float*>(arguments.inputs[3]);
        T* y = static_cast<T*>(arguments.outputs[0]);
        w.template run<T>(arguments.inputs[1], arguments.inputs[2],
                          [&](std::int64_t at, std::int64_t old, std::int64_t, double sum) {
                            y[at] = static_cast<T>(master[old] - rate * sum);
                          });
      });
}

std::unique_ptr<PreparedKernel> matmul(const KernelRequest& request) {
  return with_main_type(request.inputs[0].type.dtype,
                        [&](auto tag) { return prepare_matmul<decltype(tag)>(request); });
}

std::unique_ptr<PreparedKernel> gemm(const KernelRequest& request) {
  return with_main_type(request.inputs[0].type.dtype,
                        [&](auto tag) { return prepare_gemm<decltype(tag)>(request); });
}

std::unique_ptr<PreparedKernel> gemm_sgd(const KernelRequest& request) {
  return with_main_type(request.inputs[0].type.dtype,
                        [&](auto tag) { return prepare_gemm_sgd<decltype(tag)>(request); });
}

}  // namespace

void add_products(KernelList& list) {
  list.push_back(reference_kernel("matmul", "MatMul", refuse_other_types<0>, matmul));
  list.push_back(reference_kernel("gemm", "Gemm", refuse_other_types<0>, gemm));
  list.push_back(reference_kernel("gemm_sgd", "GemmSgd", refuse_other_types<0>, gemm_sgd));
}

}  // namespace tandem::reference
