// next(pad=0): the labels of a language model: at each place of a row of ids the one that follows
// it. -100, which losses ignore, is at the last place, and with `pad` from the last value that is
// not pad on.
#include <algorithm>
#include <optional>

#include "engine/data/buckets/sequence_length.h"
#include "engine/data/functions/field_function.h"
#include "engine/data/tokens/token_samples.h"

namespace tandem::functions {
namespace {

struct Next final : FieldFunction {
  std::optional<std::int64_t> pad;

  explicit Next(Call& call) {
    if (const auto id = call.take_number("pad")) pad = whole(*id, -(std::int64_t{1} << 31), "pad");
    call.count(0, 0, "next(pad=0)");
  }

  TensorType type_of(const TensorType& from) const override {
    if (from.shape.size() != 1 || !is_integer(from.dtype))
      throw std::invalid_argument("next takes rows of whole numbers, not " + to_string(from));
    return {DType::int64, from.shape};
  }
  void run(const SampleArray& sample) const override {
    const std::int64_t places = sample.type.shape[0];
    const std::int64_t length = pad ? sequence_length(sample.type, sample.values, *pad) : places;
    std::int64_t* const to = sample.to<std::int64_t>();
    const std::int64_t labels = std::max<std::int64_t>(length - 1, 0);
    with_type(sample.type.dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_integral_v<T>) {
        const T* const from = sample.as<T>();
        for (std::int64_t i = 0; i < labels; ++i) to[i] = static_cast<std::int64_t>(from[i + 1]);
      }
    });
    std::fill(to + labels, to + places, ignored_target);
  }
};

}  // namespace

FieldFunctionKind next() {
  return {.name = "next", .form = "next(pad=0)", .read = read_call<Next>};
}

}  // namespace tandem::functions
