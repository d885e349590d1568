// fill(1): the same number at each place, in the shape of what comes before: a mask where nothing
// is padding, segments of single texts. int64 for a whole number, else float32.
#include <algorithm>
#include <cmath>

#include "engine/data/functions/field_function.h"

namespace tandem::functions {
namespace {

struct Fill final : FieldFunction {
  double value = 0;
  DType dtype = DType::int64;

  explicit Fill(Call& call) {
    call.count(1, 1, "fill(1)");
    value = call.number(0);
    constexpr double most = 9007199254740992;  // 2^53, up to which doubles have every whole number
    if (!std::isfinite(value) || std::abs(value) > most)
      throw std::invalid_argument("the number must be between -2^53 and 2^53");
    if (std::trunc(value) != value) dtype = DType::float32;
  }

  TensorType type_of(const TensorType& from) const override { return {dtype, from.shape}; }
  void run(const SampleArray& sample) const override {
    const std::int64_t count = sample.elements();
    if (dtype == DType::int64)
      std::fill_n(sample.to<std::int64_t>(), count, static_cast<std::int64_t>(value));
    else
      std::fill_n(sample.to<float>(), count, static_cast<float>(value));
  }
};

}  // namespace

FieldFunctionKind fill() { return {.name = "fill", .form = "fill(1)", .read = read_call<Fill>}; }

}  // namespace tandem::functions
