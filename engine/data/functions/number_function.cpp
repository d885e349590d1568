// The loop over arrays and the place among functions of text that all functions of numbers share.
#include "engine/data/functions/field_function.h"
#include "engine/data/functions/map_numbers.h"
#include "engine/data/table_plan.h"

namespace tandem {

void NumberFunction::run(const SampleArray& sample) const {
  const auto value = [this](double x) { return of(x); };
  if (is_float(result())) return functions::map_numbers(sample, 0, sample.elements(), value);
  with_type(sample.type.dtype, [&](auto zero) {
    functions::map_values(sample.as<decltype(zero)>(), sample.elements(), sample.to<std::int64_t>(),
                          value);
  });
}

bool NumberFunction::take_text(FieldPlanner& plan) const {
  plan.take_number(*this);
  return true;
}

}  // namespace tandem
