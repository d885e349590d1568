// Ten patterns of stripes, for the examples: pictures of 8x8 pixels with their number as label.
#pragma once

#include <tandem/tandem.h>

#include <cstdint>
#include <vector>

/// One pixel of the picture with that number.
inline float stripe(std::int64_t number, std::int64_t pixel) {
  return pixel % 11 == number % 10 ? 1.0f : 0.0f;
}

/// Pictures first, first + 1, ...: what the model in models/digits and its loss read.
inline tandem::api::Tensors stripes(std::int64_t first, std::int64_t count) {
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = first; i < first + count; ++i) {
    labels.push_back(i % 10);
    for (std::int64_t pixel = 0; pixel < 64; ++pixel) pixels.push_back(stripe(i, pixel));
  }
  return {{"image", tandem::api::Tensor::copy_of({count, 1, 8, 8}, pixels)},
          {"labels", tandem::api::Tensor::copy_of({count}, labels)}};
}
