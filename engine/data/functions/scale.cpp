// scale(1/255): x times the factor, float32, computed in double.
#include <fmt/format.h>

#include "engine/data/functions/field_function.h"
#include "engine/data/functions/map_numbers.h"

namespace tandem::functions {
namespace {

struct Scale final : FieldFunction {
  double factor = 1;

  explicit Scale(Call& call) {
    call.count(1, 1, "scale(1/255)");
    factor = call.number(0);
  }

  TensorType type_of(const TensorType& from) const override { return {DType::float32, from.shape}; }
  bool computes_numbers() const override { return true; }
  void run(const SampleArray& sample) const override {
    map_numbers(sample, 0, sample.elements(), [by = factor](double x) { return x * by; });
  }
  std::string decides_ids() const override { return fmt::format("scale({})", factor); }
};

}  // namespace

FieldFunctionKind scale() {
  return {.name = "scale", .form = "scale(1/255)", .read = read_call<Scale>};
}

}  // namespace tandem::functions
