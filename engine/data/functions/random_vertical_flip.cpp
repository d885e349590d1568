// random_vertical_flip: the rows of the last two axes from the last to the first, with probability
// 1/2.
#include <cstring>

#include "engine/data/functions/field_function.h"

namespace tandem::functions {
namespace {

struct RandomVerticalFlip final : FieldFunction {
  TensorType type_of(const TensorType& from) const override {
    if (from.shape.size() < 2)
      throw std::invalid_argument("flips rows of two axes, not " + to_string(from));
    return from;
  }
  void run(const SampleArray& sample) const override {
    const std::size_t bytes = sample.type.bytes();
    if (sample.random().below(2) != 1) {
      if (bytes > 0) std::memcpy(sample.result, sample.values, bytes);
      return;
    }
    const Shape& shape = sample.type.shape;
    const auto rows = static_cast<std::size_t>(shape[shape.size() - 2]);
    const std::size_t row = bytes == 0 ? 0
                                       : bytes / static_cast<std::size_t>(sample.elements()) *
                                             static_cast<std::size_t>(shape.back());
    const auto* const from = sample.as<std::uint8_t>();
    auto* const to = sample.to<std::uint8_t>();
    for (std::size_t plane = 0; plane < bytes; plane += rows * row) {
      for (std::size_t y = 0; y < rows; ++y)
        std::memcpy(to + plane + y * row, from + plane + (rows - 1 - y) * row, row);
    }
  }
};

}  // namespace

FieldFunctionKind random_vertical_flip() {
  return {.name = "random_vertical_flip",
          .form = "random_vertical_flip",
          .read = read_call<RandomVerticalFlip>,
          .is_random = true};
}

}  // namespace tandem::functions
