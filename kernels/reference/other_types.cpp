// The reference kernels for integers, bool and the 16-bit floats, which compute in float.
#include "kernels/reference/basic_parts.h"
#include "kernels/reference/elementwise.h"
#include "kernels/reference/gathers.h"
#include "kernels/reference/padding.h"
#include "kernels/reference/products.h"
#include "kernels/reference/reductions.h"

namespace tandem::reference {
namespace {

std::unique_ptr<PreparedKernel> function(const KernelRequest& request) {
  return with_other_type(request.inputs[0].type.dtype,
                         [&](auto tag) { return prepare_scalar<decltype(tag)>(request); });
}

// All pairs of types but those of two main ones.
std::optional<std::string> refuse_power(const KernelRequest& request) {
  if (!refuse_main_types<0>(request) || !refuse_main_types<1>(request)) return std::nullopt;
  return refuse_main_types<0>(request);
}

std::unique_ptr<PreparedKernel> power(const KernelRequest& request) {
  return with_type(request.inputs[0].type.dtype, [&](auto base) {
    return with_type(request.inputs[1].type.dtype,
                     [&](auto exponent) -> std::unique_ptr<PreparedKernel> {
                       using T = decltype(base);
                       using E = decltype(exponent);
                       if constexpr (std::is_same_v<T, bool> || std::is_same_v<E, bool>) {
                         assert(false && "no powers of bool");
                         return nullptr;
                       } else {
                         return prepare_power<T, E>(request);
                       }
                     });
  });
}

// `make` gets a value of the element type; bool takes part as a number of one byte.
template <class F>
std::unique_ptr<PreparedKernel> for_numbers(DType dtype, F make) {
  return with_other_type(dtype, [&](auto tag) {
    using T = std::conditional_t<std::is_same_v<decltype(tag), bool>, std::uint8_t, decltype(tag)>;
    return make(T{});
  });
}

std::unique_ptr<PreparedKernel> sum(const KernelRequest& request) {
  return for_numbers(request.inputs[0].type.dtype,
                     [&](auto tag) { return prepare_sum<decltype(tag)>(request); });
}

std::unique_ptr<PreparedKernel> max(const KernelRequest& request) {
  return for_numbers(request.inputs[0].type.dtype,
                     [&](auto tag) { return prepare_max<decltype(tag)>(request); });
}

std::unique_ptr<PreparedKernel> matmul(const KernelRequest& request) {
  return for_numbers(request.inputs[0].type.dtype,
                     [&](auto tag) { return prepare_matmul<decltype(tag)>(request); });
}

std::unique_ptr<PreparedKernel> pad_grad(const KernelRequest& request) {
  return for_numbers(request.inputs[0].type.dtype,
                     [&](auto tag) { return prepare_pad_grad<decltype(tag)>(request); });
}

std::unique_ptr<PreparedKernel> gather_grad(const KernelRequest& request) {
  return for_numbers(request.inputs[0].type.dtype,
                     [&](auto tag) { return prepare_gather_grad<decltype(tag)>(request); });
}

std::optional<std::string> refuse_all_but_half(const KernelRequest& request) {
  const DType dtype = request.inputs[0].type.dtype;
  if (dtype == DType::float16 || dtype == DType::bfloat16) return std::nullopt;
  return "element type " + std::string(name_of(dtype));
}

std::unique_ptr<PreparedKernel> sum_of_squares(const KernelRequest& request) {
  if (request.inputs[0].type.dtype == DType::float16)
    return prepare_sum_of_squares<Float16>(request);
  return prepare_sum_of_squares<BFloat16>(request);
}

}  // namespace

void add_other_types(KernelList& list) {
  const auto add = [&](const std::string& name, const char* op, Prepare prepare) {
    list.push_back(reference_kernel(name + ".other_types", op, refuse_main_types<0>, prepare));
  };
  // For any number
  add("neg", "Neg", function);
  add("abs", "Abs", function);
  add("sign", "Sign", function);
  add("relu", "Relu", function);
  add("clip", "Clip", function);
  add("add", "Add", function);
  add("sub", "Sub", function);
  add("mul", "Mul", function);
  add("div", "Div", function);
  add("max", "Max", function);
  add("min", "Min", function);
  add("equal", "Equal", function);
  add("less", "Less", function);
  add("greater", "Greater", function);
  add("less_or_equal", "LessOrEqual", function);
  add("greater_or_equal", "GreaterOrEqual", function);
  add("reduce_sum", "ReduceSum", sum);
  add("reduce_mean", "ReduceMean", sum);
  add("reduce_max", "ReduceMax", max);
  add("matmul", "MatMul", matmul);
  add("pad_grad", "PadGrad", pad_grad);
  add("gather_grad", "GatherGrad", gather_grad);
  list.push_back(reference_kernel("pow.other_types", "Pow", refuse_power, power));

  // For bool
  add("not", "Not", function);
  add("and", "And", function);
  add("or", "Or", function);
  add("xor", "Xor", function);

  // For float16 and bfloat16
  const auto add_half = [&](const std::string& name, const char* op, Prepare prepare) {
    list.push_back(reference_kernel(name + ".other_types", op, refuse_all_but_half, prepare));
  };
  add_half("exp", "Exp", function);
  add_half("log", "Log", function);
  add_half("sqrt", "Sqrt", function);
  add_half("reciprocal", "Reciprocal", function);
  add_half("erf", "Erf", function);
  add_half("tanh", "Tanh", function);
  add_half("sigmoid", "Sigmoid", function);
  add_half("softplus", "Softplus", function);
  add_half("leaky_relu", "LeakyRelu", function);
  add_half("gelu", "Gelu", function);
  add_half("relu_grad", "ReluGrad", function);
  add_half("leaky_relu_grad", "LeakyReluGrad", function);
  add_half("clip_grad", "ClipGrad", function);
  add_half("gelu_grad", "GeluGrad", function);
  add_half("tanh_grad", "TanhGrad", function);
  add_half("sigmoid_grad", "SigmoidGrad", function);
  add_half("sum_of_squares", "SumOfSquares", sum_of_squares);
}

}  // namespace tandem::reference
