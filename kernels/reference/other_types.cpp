// The reference kernels for integers, bool and the 16-bit floats, which compute in float.
#include "kernels/reference/elementwise.h"
#include "kernels/reference/gather.h"
#include "kernels/reference/pad.h"
#include "kernels/reference/products.h"
#include "kernels/reference/reductions.h"
#include "kernels/reference/scalar_operators.h"

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

std::unique_ptr<PreparedKernel> prod(const KernelRequest& request) {
  return for_numbers(request.inputs[0].type.dtype,
                     [&](auto tag) { return prepare_prod<decltype(tag)>(request); });
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
  return element_type(dtype);
}

std::unique_ptr<PreparedKernel> sum_of_squares(const KernelRequest& request) {
  if (request.inputs[0].type.dtype == DType::float16)
    return prepare_sum_of_squares<Float16>(request);
  return prepare_sum_of_squares<BFloat16>(request);
}

}  // namespace

void add_other_types(KernelList& list) {
  const auto add = [&](const std::string& op, Refuse refuse, Prepare prepare) {
    list.push_back(reference_kernel(kernel_name(op) + ".other_types", op, refuse, prepare));
  };
  for_each_scalar_operator([&](const Operator& op) {
    switch (types_of(op.scalar)) {
      case ScalarTypes::numbers:
      case ScalarTypes::integers:
      case ScalarTypes::booleans:
      case ScalarTypes::any:
        add(op.name, refuse_main_types<0>, function);
        break;
      case ScalarTypes::floats:
        add(op.name, refuse_all_but_half, function);
        break;
      case ScalarTypes::own:
        break;
    }
  });
  add("Pow", refuse_power, power);
  add("ReduceSum", refuse_main_types<0>, sum);
  add("ReduceMean", refuse_main_types<0>, sum);
  add("ReduceProd", refuse_main_types<0>, prod);
  add("ReduceMax", refuse_main_types<0>, max);
  list.push_back(reference_kernel("matmul.other_types", "MatMul", refuse_main_types<0>, matmul));
  add("PadGrad", refuse_main_types<0>, pad_grad);
  add("GatherGrad", refuse_main_types<0>, gather_grad);
  add("SumOfSquares", refuse_all_but_half, sum_of_squares);
}

}  // namespace tandem::reference
