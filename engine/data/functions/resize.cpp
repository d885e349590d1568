// resize(h, w): the last two axes to that size, bilinear: the centre of output pixel i lies at
// (i + 0.5) * scale - 0.5 of the input, edges repeat.
#include <algorithm>
#include <cmath>

#include "engine/data/functions/planes.h"

#pragma GCC optimize("O3")  // the loops below vectorise only so

namespace tandem::functions {
namespace {

template <class T>
void resize_planes(const Planes& in, const Planes& out, const T* x, T* y) {
  const float scale_y = static_cast<float>(in.height) / static_cast<float>(out.height);
  const float scale_x = static_cast<float>(in.width) / static_cast<float>(out.width);
  const auto place = [](std::int64_t i, float scale, std::int64_t extent, std::int64_t& low,
                        std::int64_t& high) {
    const float at = std::max(0.0f, (static_cast<float>(i) + 0.5f) * scale - 0.5f);
    low = std::min(static_cast<std::int64_t>(at), extent - 1);
    high = std::min(low + 1, extent - 1);
    return std::min(at - static_cast<float>(low), 1.0f);
  };
  for (std::int64_t plane = 0; plane < out.count; ++plane, x += in.height * in.width) {
    for (std::int64_t i = 0; i < out.height; ++i) {
      std::int64_t top, bottom;
      const float v = place(i, scale_y, in.height, top, bottom);
      for (std::int64_t j = 0; j < out.width; ++j) {
        std::int64_t left, right;
        const float u = place(j, scale_x, in.width, left, right);
        const auto at = [&](std::int64_t row, std::int64_t column) {
          return static_cast<float>(x[row * in.width + column]);
        };
        const float upper = at(top, left) * (1 - u) + at(top, right) * u;
        const float lower = at(bottom, left) * (1 - u) + at(bottom, right) * u;
        const float value = upper * (1 - v) + lower * v;
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
          *y++ = static_cast<T>(std::lround(value));
        } else if constexpr (std::is_same_v<T, bool>) {
          *y++ = value >= 0.5f;
        } else {
          *y++ = T(value);
        }
      }
    }
  }
}

struct Resize final : ImageFunction {
  explicit Resize(Call& call) { read_size(call, "resize(32) or resize(height, width)"); }

  void run(const SampleArray& sample) const override {
    with_type(sample.type.dtype, [&](auto zero) {
      using T = decltype(zero);
      resize_planes(Planes(sample.type.shape), Planes(sample.result_type.shape), sample.as<T>(),
                    sample.to<T>());
    });
  }
};

}  // namespace

FieldFunctionKind resize() {
  return {.name = "resize",
          .form = "resize(h, w)",
          .read = read_call<Resize>,
          .may_augment = true,
          .before_augment = true};
}

}  // namespace tandem::functions
