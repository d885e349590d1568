// random_crop(size, padding=n): a window of the last two axes, after padding with zeros on all four
// sides.
#include <algorithm>
#include <cstring>

#include "engine/data/functions/planes.h"

namespace tandem::functions {
namespace {

void crop(const Planes& in, const Planes& out, std::int64_t padding, RandomStream random,
          std::size_t size, const std::uint8_t* from, std::uint8_t* to) {
  const auto span = [&](std::int64_t extent, std::int64_t taken) {
    return static_cast<std::uint64_t>(extent + 2 * padding - taken + 1);
  };
  const std::int64_t top =
      static_cast<std::int64_t>(random.below(span(in.height, out.height))) - padding;
  const std::int64_t left =
      static_cast<std::int64_t>(random.below(span(in.width, out.width))) - padding;
  const std::int64_t first = std::max<std::int64_t>(0, left);
  const std::int64_t last = std::min(in.width, left + out.width);
  const std::size_t row = static_cast<std::size_t>(out.width) * size;
  for (std::int64_t plane = 0; plane < out.count; ++plane) {
    for (std::int64_t y = 0; y < out.height; ++y, to += row) {
      const std::int64_t source = top + y;
      if (source < 0 || source >= in.height || first >= last) {
        std::memset(to, 0, row);
        continue;
      }
      const std::uint8_t* line =
          from + static_cast<std::size_t>((plane * in.height + source) * in.width) * size;
      const std::size_t before = static_cast<std::size_t>(first - left) * size;
      const std::size_t middle = static_cast<std::size_t>(last - first) * size;
      std::memset(to, 0, before);
      std::memcpy(to + before, line + static_cast<std::size_t>(first) * size, middle);
      std::memset(to + before + middle, 0, row - before - middle);
    }
  }
}

struct RandomCrop final : ImageFunction {
  std::int64_t padding = 0;

  explicit RandomCrop(Call& call) {
    if (const auto sides = call.take_number("padding")) padding = whole(*sides, 0, "padding");
    read_size(call, "random_crop(32, padding=4)");
  }

  TensorType type_of(const TensorType& from) const override {
    TensorType to = ImageFunction::type_of(from);
    const Planes in(from.shape);
    if (in.height + 2 * padding < height || in.width + 2 * padding < width)
      throw std::invalid_argument("the crop is larger than the padded " + to_string(from));
    return to;
  }
  void run(const SampleArray& sample) const override {
    crop(Planes(sample.type.shape), Planes(sample.result_type.shape), padding, sample.random(),
         size_of(sample.type.dtype), sample.as<std::uint8_t>(), sample.to<std::uint8_t>());
  }
};

}  // namespace

FieldFunctionKind random_crop() {
  return {.name = "random_crop",
          .form = "random_crop(size, padding=n)",
          .read = read_call<RandomCrop>,
          .is_random = true};
}

}  // namespace tandem::functions
