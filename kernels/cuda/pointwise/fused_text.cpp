#include "kernels/cuda/pointwise/fused_text.h"

#include <bit>
#include <cstdint>
#include <cstdio>

#include "kernels/shared/scalar.h"

namespace tandem::cuda {
namespace {

std::string hexadecimal(std::uint64_t bits) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llxu", static_cast<unsigned long long>(bits));
  return text;
}

}  // namespace

const char* stored_name(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "float";
    case DType::float64:
      return "double";
    case DType::float16:
      return "CardFloat16";
    case DType::bfloat16:
      return "CardBFloat16";
    case DType::int8:
      return "std::int8_t";
    case DType::int16:
      return "std::int16_t";
    case DType::int32:
      return "std::int32_t";
    case DType::int64:
      return "std::int64_t";
    case DType::uint8:
      return "std::uint8_t";
    case DType::uint16:
      return "std::uint16_t";
    case DType::uint32:
      return "std::uint32_t";
    case DType::uint64:
      return "std::uint64_t";
    case DType::boolean:
      return "bool";
  }
  return "float";
}

bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

const char* computed_name(DType dtype) { return is_half(dtype) ? "float" : stored_name(dtype); }

std::string number_text(DType dtype, double number) {
  char comment[40];
  std::snprintf(comment, sizeof comment, " /* %.9g */", number);
  if (dtype == DType::float64)
    return "from_bits<double>(" + hexadecimal(std::bit_cast<std::uint64_t>(number)) + ")" + comment;
  if (dtype == DType::boolean) return number != 0 ? "true" : "false";
  if (is_float(dtype)) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(number));
    return "from_bits<float>(" + hexadecimal(bits) + ")" + comment;
  }
  const auto whole = scalar::cast<std::int64_t>(number);
  const std::uint64_t bits = dtype == DType::uint64 ? scalar::cast<std::uint64_t>(number)
                                                    : static_cast<std::uint64_t>(whole);
  return "static_cast<" + std::string(stored_name(dtype)) + ">(" + hexadecimal(bits) + ")" +
         comment;
}

// No default: a function that is missing here is a compiler warning.
const char* function_name(ScalarFunction f) {
  switch (f) {
    // clang-format off
#define TANDEM_NAME(name) case ScalarFunction::name: return #name;
    TANDEM_NAME(neg) TANDEM_NAME(abs) TANDEM_NAME(sign) TANDEM_NAME(exp) TANDEM_NAME(log)
    TANDEM_NAME(sqrt) TANDEM_NAME(reciprocal) TANDEM_NAME(erf) TANDEM_NAME(tanh)
    TANDEM_NAME(sigmoid) TANDEM_NAME(softplus) TANDEM_NAME(relu) TANDEM_NAME(leaky_relu)
    TANDEM_NAME(clip) TANDEM_NAME(gelu) TANDEM_NAME(add) TANDEM_NAME(sub) TANDEM_NAME(mul)
    TANDEM_NAME(div) TANDEM_NAME(pow) TANDEM_NAME(maximum) TANDEM_NAME(minimum)
    TANDEM_NAME(equal) TANDEM_NAME(less) TANDEM_NAME(greater) TANDEM_NAME(less_or_equal)
    TANDEM_NAME(greater_or_equal) TANDEM_NAME(relu_grad) TANDEM_NAME(leaky_relu_grad)
    TANDEM_NAME(clip_grad) TANDEM_NAME(gelu_grad) TANDEM_NAME(tanh_grad)
    TANDEM_NAME(sigmoid_grad)
#undef TANDEM_NAME
    case ScalarFunction::none:
    case ScalarFunction::identity:
    case ScalarFunction::cast:
    case ScalarFunction::logical_not:
    case ScalarFunction::logical_and:
    case ScalarFunction::logical_or:
    case ScalarFunction::logical_xor:
    case ScalarFunction::where:
      break;
    // clang-format on
  }
  return "";
}

}  // namespace tandem::cuda
