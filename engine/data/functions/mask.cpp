// mask(pad=0): 1 for each value of a sequence up to the last one that is not `pad`, 0 after it.
#include <algorithm>

#include "engine/data/buckets/sequence_length.h"
#include "engine/data/functions/field_function.h"

namespace tandem::functions {
namespace {

struct Mask final : FieldFunction {
  static constexpr std::int64_t lowest_pad = -(std::int64_t{1} << 31);
  std::int64_t pad = 0;

  explicit Mask(Call& call) {
    if (const auto id = call.take_number("pad")) pad = whole(*id, lowest_pad, "pad");
    call.count(0, 0, "mask(pad=0)");
  }

  TensorType type_of(const TensorType& from) const override {
    if (from.shape.empty() || from.dtype == DType::boolean)
      throw std::invalid_argument("mask takes sequences of numbers, not " + to_string(from));
    return {DType::int64, {from.shape[0]}};
  }
  void run(const SampleArray& sample) const override {
    const std::int64_t length = sequence_length(sample.type, sample.values, pad);
    std::int64_t* const to = sample.to<std::int64_t>();
    std::fill(to, to + length, 1);
    std::fill(to + length, to + sample.type.shape[0], 0);
  }
};

}  // namespace

FieldFunctionKind mask() {
  return {.name = "mask", .form = "mask(pad=0)", .read = read_call<Mask>};
}

}  // namespace tandem::functions
