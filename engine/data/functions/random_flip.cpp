// random_flip: the last axis backwards, with probability 1/2.
#include <algorithm>
#include <cstring>

#include "engine/data/functions/field_function.h"

namespace tandem::functions {
namespace {

struct RandomFlip final : FieldFunction {
  TensorType type_of(const TensorType& from) const override {
    if (from.shape.empty()) throw std::invalid_argument("a single number cannot be flipped");
    return from;
  }
  void run(const SampleArray& sample) const override {
    if (sample.random().below(2) != 1) {
      std::memcpy(sample.result, sample.values, sample.type.bytes());
      return;
    }
    with_type(sample.type.dtype, [&](auto zero) {
      using T = decltype(zero);
      const std::int64_t width = sample.type.shape.back();
      const T *x = sample.as<T>(), *const end = x + sample.elements();
      for (T* y = sample.to<T>(); x != end; x += width, y += width)
        std::reverse_copy(x, x + width, y);
    });
  }
};

}  // namespace

FieldFunctionKind random_flip() {
  return {.name = "random_flip",
          .form = "random_flip",
          .read = read_call<RandomFlip>,
          .is_random = true};
}

}  // namespace tandem::functions
