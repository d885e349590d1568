// What MaxPool and AveragePool check alike.
#pragma once

#include "engine/operators/network_checks.h"
#include "engine/operators/window.h"

namespace tandem::operators {

/// kernel_shape, strides, pads, dilations, ceil_mode.
inline std::vector<AttributeSpec> pooling_attributes() {
  return {{"kernel_shape", Ints{}, true},
          {"strides", Ints{}, true},
          {"pads", Ints{}, true},
          {"dilations", Ints{}, true},
          {"ceil_mode", std::int64_t{0}}};
}

/// The output's shape for x [N, C, spatial...]; throws through `fail`.
inline Shape pooled_shape(const NodeView& view, const Shape& x) {
  if (x.size() < 3 || x.size() > 5) {
    view.fail("x has the wrong rank", "[N, C] and 1 to 3 spatial axes", to_string(x));
  }
  const std::size_t spatial = x.size() - 2;
  const Ints& kernel = view.attributes().integers("kernel_shape");
  if (kernel.size() != spatial) {
    view.fail("kernel_shape has the wrong length", std::to_string(spatial) + " numbers",
              to_string(kernel));
  }
  for (std::int64_t extent : kernel) {
    if (extent < 1 || extent > (1 << 30)) {
      view.fail("kernel_shape is out of range", "numbers from 1 to 2^30", to_string(kernel));
    }
  }
  require_windows(view, spatial);
  require_flag(view, "ceil_mode");
  const std::vector<Window> windows = windows_of(view.attributes(), kernel);
  for (const Window& window : windows) {
    if (window.pad_begin >= window.extent() || window.pad_end >= window.extent()) {
      view.fail("a window would lie wholly in the padding",
                "pads below the window's extent " + std::to_string(window.extent()),
                to_string(view.attributes().integers("pads")));
    }
  }
  Shape y = output_extents(view, x, kernel, view.attributes().flag("ceil_mode"));
  y.insert(y.begin(), {x[0], x[1]});
  return y;
}

/// One operation for each tap of each window of a y with that shape.
inline double pooling_flops(const NodeView& view, const Shape& y) {
  const Ints& kernel = view.attributes().integers("kernel_shape");
  return static_cast<double>(element_count(y)) * static_cast<double>(element_count(kernel));
}

}  // namespace tandem::operators
