// Weight gradients of depthwise convolutions on channels-last maps: every lane is a channel, and
// the sums of all taps stay in registers over the images.
#pragma once

#include <cstdint>

#include "kernels/cpu/convolution/convolution_axis.h"

namespace tandem {

/// x [images, rows.in, columns.in, channels], dy alike with out, dw [window, window, channels].
struct Depthwise {
  std::int64_t channels = 0;
  ConvolutionAxis rows, columns;
};

/// dw of some images and of channels `channel` to `channel` + `count`, which make one vector.
struct DepthwisePart {
  const Depthwise* map;
  const float *x, *dy;
  float* dw;
  std::int64_t first_image, images, channel, count;
};

/// Windows of 3 x 3 and 5 x 5.
void depthwise_weights_avx2(const DepthwisePart& part);
void depthwise_weights_avx512(const DepthwisePart& part);

}  // namespace tandem
