// Slice of every version: static ranges as the engine's starts, sizes and steps.
#include "importer/operators/ranges.h"
#include "importer/operators/rebatch.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::importer::operators {

// numpy's start:end:step on an axis of `extent` elements.
void set_range(Ranges& ranges, std::size_t axis, std::int64_t extent, std::int64_t start,
               std::int64_t end, std::int64_t step) {
  if (start < 0) start += extent;
  if (end < 0) end += extent;
  std::int64_t size = 0;
  if (step > 0) {
    start = std::clamp<std::int64_t>(start, 0, extent);
    end = std::clamp<std::int64_t>(end, 0, extent);
    if (start < end) size = (end - start - 1) / step + 1;
  } else {
    start = std::clamp<std::int64_t>(start, -1, extent - 1);
    end = std::clamp<std::int64_t>(end, -1, extent - 1);
    // A step of -2^63 has no positive counterpart; the division by it is exact enough: at most 1
    // element.
    if (start > end) size = (start - end - 1) / -std::max(step, -(std::int64_t{1} << 62)) + 1;
  }
  ranges.starts[axis] = size > 0 ? start : 0;
  ranges.sizes[axis] = size;
  ranges.steps[axis] = size > 1 ? step : 1;
}

void slice(NodeContext& node) {
  const Shape& x = node.shape(0);
  const bool inputs = node.version() >= 10;
  const Ints starts = inputs ? node.static_integers(1, "starts") : node.integers("starts", {});
  const Ints ends = inputs ? node.static_integers(2, "ends") : node.integers("ends", {});
  Ints axes(starts.size());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  Ints steps(starts.size(), 1);
  if (inputs) {
    if (node.has(3)) axes = node.static_integers(3, "axes");
    if (node.has(4)) steps = node.static_integers(4, "steps");
  } else {
    axes = node.integers("axes", axes);
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    node.fail("starts, ends, axes and steps", "equally many",
              fmt::format("{}, {}, {}, {}", starts.size(), ends.size(), axes.size(), steps.size()));
  }
  node.axes(axes, node.rank(0));
  Ranges ranges(x);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0) node.fail("steps", "numbers other than 0", "0");
    const auto axis = static_cast<std::size_t>(node.axis(axes[i], node.rank(0)));
    const std::int64_t end = steps[i] > 0 ? end_in_batch(node, axis, starts[i], ends[i]) : ends[i];
    set_range(ranges, axis, x[axis], starts[i], end, steps[i]);
  }
  node.out(0, node.make("Slice", {node.in(0)}, ranges.attributes()));
}

}  // namespace tandem::importer::operators
