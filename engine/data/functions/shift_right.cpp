// shift_right(start=0, pad=0): what a decoder reads where a row of labels is what it has to write:
// `start`, then each label one place later. -100, which means "no label", becomes `pad`; this is
// how transformers makes decoder_input_ids.
#include "engine/data/functions/field_function.h"
#include "engine/data/tokens/token_samples.h"

namespace tandem::functions {
namespace {

struct ShiftRight final : FieldFunction {
  std::int64_t start = 0, pad = 0;

  explicit ShiftRight(Call& call) {
    const auto first = call.take_number("start");
    if (!first) throw std::invalid_argument("write shift_right(start=0, pad=0)");
    start = whole(*first, 0, "start");
    if (const auto id = call.take_number("pad")) pad = whole(*id, 0, "pad");
    call.count(0, 0, "shift_right(start=0, pad=0)");
  }

  TensorType type_of(const TensorType& from) const override {
    if (from.shape.size() != 1 || !is_integer(from.dtype))
      throw std::invalid_argument("shift_right takes rows of whole numbers, not " +
                                  to_string(from));
    return {DType::int64, from.shape};
  }
  void run(const SampleArray& sample) const override {
    const std::int64_t places = sample.type.shape[0];
    std::int64_t* const to = sample.to<std::int64_t>();
    with_type(sample.type.dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_integral_v<T>) {
        const T* const from = sample.as<T>();
        for (std::int64_t i = 0; i < places; ++i) {
          const std::int64_t id = i == 0 ? start : static_cast<std::int64_t>(from[i - 1]);
          to[i] = id == ignored_target ? pad : id;
        }
      }
    });
  }
};

}  // namespace

FieldFunctionKind shift_right() {
  return {
      .name = "shift_right", .form = "shift_right(start=0, pad=0)", .read = read_call<ShiftRight>};
}

}  // namespace tandem::functions
