#include "kernels/cuda/pointwise/fused/fused_text.h"

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
      return "GpuFloat16";
    case DType::bfloat16:
      return "GpuBFloat16";
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
    case DType::float8_e4m3fn:
    case DType::float8_e4m3fnuz:
    case DType::float8_e5m2:
    case DType::float8_e5m2fnuz:
    case DType::float8_e8m0fnu:
      break;  // no element-wise operator has them
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

}  // namespace tandem::cuda
