// The loop over arrays and the place among functions of text that all functions of numbers share.
#include "engine/training/data/functions/field_function.h"
#include "engine/training/data/table_plan.h"

namespace tandem {

void NumberFunction::run(const SampleArray& sample) const {
  with_type(sample.type.dtype, [&](auto zero) {
    const auto* x = sample.as<decltype(zero)>();
    const auto apply = [&]<class To>(To* y) {
      for (std::int64_t i = 0; i < sample.elements(); ++i)
        y[i] = static_cast<To>(of(number_at(x[i])));
    };
    if (result() == DType::int64)
      apply(sample.to<std::int64_t>());
    else
      apply(sample.to<float>());
  });
}

bool NumberFunction::take_text(FieldPlanner& plan) const {
  plan.take_number(*this);
  return true;
}

}  // namespace tandem
