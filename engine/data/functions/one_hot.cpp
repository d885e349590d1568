// one_hot(10): integers to float32, 1 at their place on a new last axis. With first=1 the places
// are those of 1 to 10, and 0 has none: words that a vocabulary lacks.
#include <cstring>

#include "engine/data/functions/field_function.h"

namespace tandem::functions {
namespace {

struct OneHot final : FieldFunction {
  std::int64_t classes = 0;
  std::int64_t first = 0;  // the number that has the first place

  explicit OneHot(Call& call) {
    if (const auto given = call.take_number("first")) first = whole(*given, 0, "first");
    call.count(1, 1, "one_hot(10)");
    classes = whole(call.number(0), 1, "the number of classes");
  }

  TensorType type_of(const TensorType& from) const override {
    if (!is_integer(from.dtype))
      throw std::invalid_argument("one_hot takes integers, not " + to_string(from));
    TensorType to{DType::float32, from.shape};
    to.shape.push_back(classes);
    return to;
  }
  bool may_refuse(const TensorType&) const override { return true; }
  void run(const SampleArray& sample) const override {
    const std::int64_t count = sample.elements();
    std::memset(sample.result, 0, static_cast<std::size_t>(count * classes) * sizeof(float));
    with_type(sample.type.dtype, [&](auto zero) {
      for (std::int64_t i = 0; i < count; ++i) {
        const auto index = static_cast<std::int64_t>(sample.as<decltype(zero)>()[i]);
        if (index < 0 || index - first >= classes) {
          throw std::invalid_argument("class " + std::to_string(index) + " is not below " +
                                      std::to_string(first + classes));
        }
        if (index >= first) sample.to<float>()[i * classes + index - first] = 1;
      }
    });
  }
};

}  // namespace

FieldFunctionKind one_hot() {
  return {.name = "one_hot", .form = "one_hot(n)", .read = read_call<OneHot>};
}

}  // namespace tandem::functions
