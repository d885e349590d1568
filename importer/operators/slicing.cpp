// Slice, Split and Pad: static ranges of every version as the engine's starts, sizes and steps.
#include <fmt/format.h>

#include <algorithm>

#include "importer/operators/all.h"

namespace tandem::importer {
namespace {

struct Ranges {
  Ints starts, sizes, steps;
  explicit Ranges(const Shape& x) : starts(x.size(), 0), sizes(x), steps(x.size(), 1) {}
  Attributes attributes() const { return {{"starts", starts}, {"sizes", sizes}, {"steps", steps}}; }
};

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
    set_range(ranges, axis, x[axis], starts[i], ends[i], steps[i]);
  }
  node.out(0, node.make("Slice", {node.in(0)}, ranges.attributes()));
}

// Sizes: an attribute (1 to 12; in version 1 also an input), an input (13), or equal parts.
void split(NodeContext& node) {
  const Shape& x = node.shape(0);
  const std::int64_t axis = node.axis(node.integer("axis", 0), node.rank(0));
  const std::int64_t extent = x[static_cast<std::size_t>(axis)];
  Ints sizes = node.integers("split", {});
  if (node.has(1)) sizes = node.static_integers(1, "split");
  if (sizes.empty()) {
    const std::int64_t parts =
        node.integer("num_outputs", static_cast<std::int64_t>(node.output_count()));
    if (parts < 1 || parts > (1 << 20))
      node.fail("number of parts", "1 or more", std::to_string(parts));
    if (node.version() < 18 && extent % parts != 0) {
      node.fail("equal parts of the axis", fmt::format("a multiple of {}", parts),
                std::to_string(extent));
    }
    const std::int64_t size = (extent + parts - 1) / parts;  // the last one may be smaller
    for (std::int64_t i = 0; i < parts; ++i) {
      sizes.push_back(std::clamp<std::int64_t>(extent - i * size, 0, size));
    }
  }
  std::int64_t sum = 0;
  for (std::int64_t size : sizes) {
    if (size < 0 || size > extent)
      node.fail("size of a part", fmt::format("0 to {}", extent), std::to_string(size));
    sum += size;
  }
  if (sum != extent) node.fail("sum of the parts", std::to_string(extent), std::to_string(sum));
  if (node.output_count() != sizes.size()) {
    node.fail("number of parts", std::to_string(node.output_count()), std::to_string(sizes.size()));
  }
  const std::vector<Term> parts =
      node.make_all("Split", {node.in(0)}, {{"axis", axis}, {"sizes", sizes}});
  for (std::size_t i = 0; i < parts.size(); ++i) node.out(i, parts[i]);
}

void pad(NodeContext& node) {
  const Shape& x = node.shape(0);
  const std::size_t rank = x.size();
  const std::string mode = node.text("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    node.fail("mode", "constant, reflect, edge or wrap", mode);
  }
  const bool inputs = node.version() >= 11;
  Ints given = inputs ? node.static_integers(1, "pads")
                      : node.integers(node.version() < 2 ? "paddings" : "pads", {});
  double value = inputs ? 0.0 : node.number("value", 0.0);
  if (inputs && node.has(2)) value = node.static_number(2, "constant_value");
  Ints axes(rank);
  for (std::size_t i = 0; i < rank; ++i) axes[i] = static_cast<std::int64_t>(i);
  if (node.has(3)) {
    axes = node.static_integers(3, "axes");
    node.axes(axes, node.rank(0));
  }
  if (given.size() != 2 * axes.size()) {
    node.fail("pads", fmt::format("{} numbers", 2 * axes.size()), to_string(Shape(given)));
  }
  Ints pads(2 * rank, 0);
  Ranges kept(x);
  bool cuts = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(node.axis(axes[i], node.rank(0)));
    const std::int64_t before = given[i], after = given[i + axes.size()], limit = 1 << 30;
    if (std::max(before, after) > limit || std::min(before, after) < -limit) {
      node.fail("pads", "numbers up to 2^30", to_string(Shape(given)));
    }
    pads[axis] = std::max<std::int64_t>(before, 0);
    pads[axis + rank] = std::max<std::int64_t>(after, 0);
    const std::int64_t first = std::max<std::int64_t>(-before, 0);
    const std::int64_t last = x[axis] - std::max<std::int64_t>(-after, 0);
    if (first == 0 && last == x[axis]) continue;
    cuts = true;
    set_range(kept, axis, x[axis], first, std::max(first, last), 1);
  }
  Term result = node.in(0);
  if (cuts) result = node.make("Slice", {result}, kept.attributes());
  node.out(0, node.make("Pad", {result}, {{"pads", pads}, {"mode", mode}, {"value", value}}));
}

}  // namespace

void add_slicing(std::vector<Lowering>& list) {
  list.push_back({"Slice", slice});
  list.push_back({"Split", split});
  list.push_back({"Pad", pad});
}

}  // namespace tandem::importer
