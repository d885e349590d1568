// scale(1/255): x times the factor, float32.
#include <fmt/format.h>

#include "engine/training/data/functions/field_function.h"

#pragma GCC optimize("O3")  // the loop below vectorises only so

namespace tandem::functions {
namespace {

template <class T>
void scale_values(const T* x, std::int64_t count, float factor, float* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(x[i]) * factor;
}

struct Scale final : FieldFunction {
  double factor = 1;

  explicit Scale(Call& call) {
    call.count(1, 1, "scale(1/255)");
    factor = call.number(0);
  }

  TensorType type_of(const TensorType& from) const override { return {DType::float32, from.shape}; }
  void run(const SampleArray& sample) const override {
    with_type(sample.type.dtype, [&](auto zero) {
      scale_values(sample.as<decltype(zero)>(), sample.elements(), static_cast<float>(factor),
                   sample.to<float>());
    });
  }
  std::string decides_ids() const override { return fmt::format("scale({})", factor); }
};

}  // namespace

FieldFunctionKind scale() {
  return {.name = "scale", .form = "scale(1/255)", .read = read_call<Scale>};
}

}  // namespace tandem::functions
