// float32, int64, …: converts to that element type. Values that an integer type does not hold are
// refused. Between functions of numbers float32 rounds nothing: only the last function does.
#include <cmath>
#include <limits>

#include "engine/data/functions/field_function.h"
#include "engine/data/number_text.h"
#include "engine/data/table_plan.h"

#pragma GCC optimize("O3")  // the loops below vectorise only so

namespace tandem::functions {
namespace {

/// Whether y, of an integer type, is x; y is any number where it is not.
template <class From, class To>
bool to_whole(From x, To& y) {
  if constexpr (std::is_same_v<From, bool>) {
    y = static_cast<To>(x);
    return true;
  } else if constexpr (std::is_integral_v<From>) {
    y = static_cast<To>(x);
    return std::in_range<To>(x);
  } else if constexpr (std::is_same_v<From, float> || std::is_same_v<From, double>) {
    constexpr auto least = static_cast<From>(std::numeric_limits<To>::min());
    constexpr auto half =
        static_cast<From>(std::uint64_t{1} << (std::numeric_limits<To>::digits - 1));
    const bool is_inside = (x >= least) & (x < 2 * half);  // not so for NaN
    y = static_cast<To>(is_inside ? x : From{0});
    return is_inside & (static_cast<From>(y) == x);
  } else {
    return to_whole(static_cast<float>(x), y);
  }
}

/// What `convert_to_whole` does where a value does not fit.
template <class From, class To>
void mend_or_refuse(const From* x, std::int64_t count, DType type, bool narrows_ids, To* y) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (to_whole(x[i], y[i])) continue;
    std::string text;
    bool is_whole = true;
    if constexpr (std::is_integral_v<From>) {
      text = std::to_string(x[i]);
    } else {
      const double value = number_at(x[i]);
      text = number_text(value);
      is_whole = std::isfinite(value) && std::trunc(value) == value;
    }
    const std::string wanted(name_of(type));
    if (!is_whole) throw NotWhole(text + " is not a whole number, as " + wanted + " has them");
    if (!narrows_ids || !std::is_signed_v<To>)
      throw std::invalid_argument(text + " does not fit " + wanted);
    y[i] = static_cast<To>(-1);
  }
}

template <class From, class To>
void convert_to_whole(const From* x, std::int64_t count, DType type, bool narrows_ids, To* y) {
  unsigned misfits = 0;
  for (std::int64_t i = 0; i < count; ++i) misfits |= !to_whole(x[i], y[i]);
  if (misfits != 0) mend_or_refuse(x, count, type, narrows_ids, y);
}

/// Whether From has values that the integer type To does not have.
template <class From, class To>
constexpr bool has_misfits() {
  if constexpr (!std::is_integral_v<To> || std::is_same_v<To, bool> || std::is_same_v<From, bool>)
    return false;
  else if constexpr (std::is_integral_v<From>)
    return !std::in_range<To>(std::numeric_limits<From>::min()) ||
           !std::in_range<To>(std::numeric_limits<From>::max());
  else
    return true;
}

template <class From, class To>
void cast_values(const From* x, std::int64_t count, To* y) {
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<To, bool>) {
      y[i] = static_cast<float>(x[i]) != 0;
    } else if constexpr (std::is_same_v<To, Float16> || std::is_same_v<To, BFloat16>) {
      y[i] = To(static_cast<float>(x[i]));
    } else if constexpr (std::is_same_v<From, Float16> || std::is_same_v<From, BFloat16>) {
      y[i] = static_cast<To>(static_cast<float>(x[i]));
    } else {
      y[i] = static_cast<To>(x[i]);
    }
  }
}

struct Cast final : FieldFunction {
  DType dtype = DType::float32;

  explicit Cast(Call& call) {
    call.count(0, 0, call.name());
    dtype = call.name() == "boolean" ? DType::boolean : *dtype_from_name(call.name());
  }

  TensorType type_of(const TensorType& from) const override { return {dtype, from.shape}; }
  bool only_copies(const TensorType& from) const override { return from.dtype == dtype; }
  bool may_refuse(const TensorType& from) const override {
    return with_type(from.dtype, [&](auto x) {
      return with_type(dtype, [&](auto y) { return has_misfits<decltype(x), decltype(y)>(); });
    });
  }
  bool keeps_whole_numbers() const override { return is_integer(dtype); }
  bool computes_numbers() const override {
    return dtype == DType::float32 || dtype == DType::float64;
  }
  void run(const SampleArray& sample) const override {
    with_type(sample.type.dtype, [&](auto x) {
      with_type(sample.result_type.dtype, [&](auto y) {
        using To = decltype(y);
        const auto* values = sample.as<decltype(x)>();
        if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool>) {
          convert_to_whole(values, sample.elements(), dtype, sample.narrows_ids, sample.to<To>());
        } else {
          cast_values(values, sample.elements(), sample.to<To>());
        }
      });
    });
  }
  bool take_text(FieldPlanner& plan) const override {
    if (plan.is_number()) return false;
    plan.end_as_number(dtype);
    return true;
  }
  std::string decides_ids() const override { return std::string(name_of(dtype)); }
};

}  // namespace

/// Files and fields hold no bfloat16.
FieldFunctionKind cast() {
  return {.form = "float32, float64, int32, int64",
          .words =
              "float32|float64|float16|int8|int16|int32|int64|uint8|uint16|uint32|uint64|bool|"
              "boolean",
          .read = read_call<Cast>};
}

}  // namespace tandem::functions
