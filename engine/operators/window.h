// Window arithmetic of convolution and pooling: where windows lie, and how many fit.
#pragma once

#include <string>
#include <vector>

#include "engine/operators/operator.h"

namespace tandem {

/// The window along one spatial axis. Tap k of window o lies at input position start(o) + k *
/// dilation.
struct Window {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_begin = 0;
  std::int64_t pad_end = 0;

  std::int64_t extent() const { return (kernel - 1) * dilation + 1; }
  std::int64_t start(std::int64_t output) const { return output * stride - pad_begin; }
};

/// How many windows fit, 0 if none. With ceil_mode a last window may hang over the end, but it must
/// start inside the input or the padding before it.
inline std::int64_t window_count(std::int64_t input, const Window& window, bool ceil_mode = false) {
  const std::int64_t room = input + window.pad_begin + window.pad_end - window.extent() +
                            (ceil_mode ? window.stride - 1 : 0);
  if (room < 0) return 0;
  std::int64_t count = room / window.stride + 1;
  if (ceil_mode && (count - 1) * window.stride >= input + window.pad_begin) --count;
  return count;
}

/// The windows of a node with `strides`, `pads` and `dilations`, for these kernel extents.
inline std::vector<Window> windows_of(const Attributes& attributes, const Shape& kernel) {
  const Ints& strides = attributes.integers("strides");
  const Ints& dilations = attributes.integers("dilations");
  const Ints& pads = attributes.integers("pads");
  std::vector<Window> windows;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    windows.push_back({kernel[i], strides[i], dilations[i], pads[i], pads[i + kernel.size()]});
  }
  return windows;
}

namespace operators {

/// Checks strides, dilations and pads of a node with that many spatial axes; throws through `fail`.
inline void require_windows(const NodeView& view, std::size_t spatial) {
  constexpr std::int64_t limit = 1 << 30;  // keeps every sum of extents far from overflow
  const auto check = [&](const char* name, std::size_t count, std::int64_t low) {
    const Ints& values = view.attributes().integers(name);
    if (values.size() != count) {
      view.fail(std::string(name) + " has the wrong length", std::to_string(count) + " numbers",
                to_string(values));
    }
    for (std::int64_t value : values) {
      if (value >= low && value <= limit) continue;
      view.fail(std::string(name) + " is out of range",
                "numbers from " + std::to_string(low) + " to 2^30", to_string(values));
    }
  };
  check("strides", spatial, 1);
  check("dilations", spatial, 1);
  check("pads", 2 * spatial, 0);
}

/// Extents of the output along the spatial axes of x, whose shape is [N, C, spatial...].
inline Shape output_extents(const NodeView& view, const Shape& x, const Shape& kernel,
                            bool ceil_mode = false) {
  const std::vector<Window> windows = windows_of(view.attributes(), kernel);
  Shape extents;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const Window& window = windows[i];
    const std::int64_t count = window_count(x[i + 2], window, ceil_mode);
    if (count == 0) {
      view.fail("the kernel is larger than the padded input along axis " + std::to_string(i + 2),
                "an extent of " + std::to_string(window.extent()) + " at least",
                std::to_string(x[i + 2] + window.pad_begin + window.pad_end));
    }
    extents.push_back(count);
  }
  return extents;
}

}  // namespace operators
}  // namespace tandem
