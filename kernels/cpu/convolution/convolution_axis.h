// One spatial axis of a convolution, for the loops of one instruction set.
#pragma once

#include <cstdint>

namespace tandem {

struct ConvolutionAxis {
  std::int64_t in = 1, out = 1, window = 1, stride = 1, dilation = 1, pad = 0;

  /// Position of the input under tap `tap` of output 0; may lie in the padding.
  std::int64_t first_input(std::int64_t tap) const { return tap * dilation - pad; }
};

/// Outputs begin to end, whose tap `tap` meets data.
struct MetOutputs {
  std::int64_t begin, end;

  MetOutputs(const ConvolutionAxis& axis, std::int64_t tap) {
    const std::int64_t first = axis.first_input(tap), room = axis.in - first;
    const std::int64_t before = first >= 0 ? 0 : (axis.stride - 1 - first) / axis.stride;
    const std::int64_t fit = room <= 0 ? 0 : (room + axis.stride - 1) / axis.stride;
    end = fit < axis.out ? fit : axis.out;
    begin = before < end ? before : end;
  }
};

}  // namespace tandem
