// What is chosen among elements: Compress, Unique, NonMaxSuppression. How many there are depends
// on the values, so that those have to be known before the run.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "importer/node_context.h"

namespace tandem::importer::operators {
namespace {

const HostTensor& known_condition(NodeContext& node, std::size_t i, const char* what) {
  const Term& term = node.in(i);
  if (!term.constant) {
    node.unsupported(
        fmt::format("how long its result is depends on {}, which must be known before "
                    "the run",
                    what));
  }
  return *term.constant;
}

Term indices_of(NodeContext& node, const std::vector<std::int64_t>& places) {
  return node.constant(HostTensor::from({static_cast<std::int64_t>(places.size())}, places));
}

// Slices of a tensor along an axis, one after the other, for comparisons. Integers of 64 bits fit.
struct Slices {
  std::int64_t count = 0, size = 0;
  std::vector<long double> numbers;  // [count, size]

  auto begin(std::int64_t i) const { return numbers.begin() + i * size; }
  bool less(std::int64_t a, std::int64_t b) const {
    return std::lexicographical_compare(begin(a), begin(a) + size, begin(b), begin(b) + size);
  }
  bool equal(std::int64_t a, std::int64_t b) const {
    return std::equal(begin(a), begin(a) + size, begin(b));
  }
};

Slices slices_of(const HostTensor& x, std::size_t axis) {
  Slices s;
  s.count = x.shape()[axis];
  const std::int64_t elements = x.type().elements();
  s.size = s.count > 0 ? elements / s.count : 0;
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < x.shape().size(); ++i) inner *= x.shape()[i];
  s.numbers.resize(static_cast<std::size_t>(elements));
  const HostTensor wide = is_float8(x.dtype()) ? x.converted(DType::float32) : x;
  with_type(wide.dtype(), [&](auto tag) {
    const auto values = wide.as<decltype(tag)>();
    for (std::int64_t i = 0; i < elements; ++i) {
      const std::int64_t before = i / inner / s.count, slice = i / inner % s.count;
      const std::int64_t at = slice * s.size + before * inner + i % inner;
      const auto value = values[static_cast<std::size_t>(i)];
      if constexpr (std::is_arithmetic_v<decltype(tag)>) {
        s.numbers[static_cast<std::size_t>(at)] = static_cast<long double>(value);
      } else {
        s.numbers[static_cast<std::size_t>(at)] =
            static_cast<long double>(static_cast<float>(value));
      }
    }
  });
  return s;
}

}  // namespace

// x need not be known, and has a gradient; without an axis it is taken as flat.
void compress(NodeContext& node) {
  const HostTensor& condition = known_condition(node, 1, "the condition");
  if (condition.dtype() != DType::boolean || condition.shape().size() != 1) {
    node.fail("condition", "bool of one axis", to_string(condition.type()));
  }
  Term x = node.in(0);
  std::int64_t axis = 0;
  if (node.has_attribute("axis")) {
    axis = node.axis(node.integer("axis", 0), node.rank(0));
  } else {
    x = node.reshape(x, {element_count(x.type.shape)});
  }
  const std::int64_t extent = x.type.shape[static_cast<std::size_t>(axis)];
  if (condition.shape()[0] > extent) {
    node.fail("length of the condition", fmt::format("at most {}", extent),
              std::to_string(condition.shape()[0]));
  }
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < condition.shape()[0]; ++i) {
    if (condition.number(i) != 0) places.push_back(i);
  }
  node.out(0, node.make("Gather", {x, indices_of(node, places)}, {{"axis", axis}}));
}

// Slices that occur, sorted or in the order in which they come; the first place of each, its number
// for each slice of x, and how often it occurs.
void unique(NodeContext& node) {
  const HostTensor& given = known_condition(node, 0, "its input");
  const bool has_axis = node.has_attribute("axis");
  const HostTensor x = has_axis ? given : given.reshaped({given.type().elements()});
  const std::int64_t axis = has_axis ? node.axis(node.integer("axis", 0), node.rank(0)) : 0;
  const Slices slices = slices_of(x, static_cast<std::size_t>(axis));
  std::vector<std::int64_t> order(static_cast<std::size_t>(slices.count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return slices.less(a, b); });
  std::vector<std::int64_t> first, group(order.size()), counts;  // by sorted group
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || !slices.equal(order[i - 1], order[i])) {
      first.push_back(order[i]);
      counts.push_back(0);
    }
    group[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(first.size()) - 1;
    ++counts.back();
  }
  std::vector<std::int64_t> ranks(first.size());  // of the groups in the result
  std::iota(ranks.begin(), ranks.end(), 0);
  if (!node.flag("sorted", true)) {
    std::sort(ranks.begin(), ranks.end(), [&](std::int64_t a, std::int64_t b) {
      return first[static_cast<std::size_t>(a)] < first[static_cast<std::size_t>(b)];
    });
  }
  std::vector<std::int64_t> places, sizes, inverse, number(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto k = static_cast<std::size_t>(ranks[i]);
    number[k] = static_cast<std::int64_t>(i);
    places.push_back(first[k]);
    sizes.push_back(counts[k]);
  }
  for (std::int64_t k : group) inverse.push_back(number[static_cast<std::size_t>(k)]);
  const Term taken =
      node.make("Gather", {node.constant(x), indices_of(node, places)}, {{"axis", axis}});
  node.out(0, taken);
  node.out(1, indices_of(node, places));
  node.out(2, indices_of(node, inverse));
  node.out(3, indices_of(node, sizes));
}

namespace {

struct Box {
  double top = 0, left = 0, bottom = 0, right = 0;

  double area() const { return (bottom - top) * (right - left); }
};

// Four numbers: two opposite corners [y, x, y, x], or the middle and the extents [x, y, w, h].
Box box_at(const HostTensor& boxes, std::int64_t index, bool by_centre) {
  const auto n = [&](std::int64_t k) { return boxes.number(index * 4 + k); };
  if (by_centre) {
    return {n(1) - n(3) / 2, n(0) - n(2) / 2, n(1) + n(3) / 2, n(0) + n(2) / 2};
  }
  return {std::min(n(0), n(2)), std::min(n(1), n(3)), std::max(n(0), n(2)), std::max(n(1), n(3))};
}

bool overlaps(const Box& a, const Box& b, double threshold) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (height <= 0 || width <= 0 || a.area() <= 0 || b.area() <= 0) return false;
  const double common = height * width;
  return static_cast<float>(common / (a.area() + b.area() - common)) >
         static_cast<float>(threshold);
}

}  // namespace

// boxes [batches, boxes, 4], scores [batches, classes, boxes] to [chosen, 3]: batch, class, box;
// of each class the boxes with the largest scores that overlap none of those before them.
void non_max_suppression(NodeContext& node) {
  const HostTensor& boxes = known_condition(node, 0, "the boxes");
  const HostTensor& scores = known_condition(node, 1, "the scores");
  const Shape &b = boxes.shape(), &s = scores.shape();
  if (b.size() != 3 || b[2] != 4 || s.size() != 3 || s[0] != b[0] || s[2] != b[1]) {
    node.fail("boxes and scores", "[batches, boxes, 4] and [batches, classes, boxes]",
              to_string(b) + " and " + to_string(s));
  }
  const bool by_centre = node.flag("center_point_box", false);
  const std::int64_t most = node.has(2) ? node.static_integer(2, "max_output_boxes_per_class") : 0;
  const double threshold = node.has(3) ? node.static_number(3, "iou_threshold") : 0;
  std::vector<std::int64_t> chosen;
  for (std::int64_t row = 0; row < s[0] * s[1]; ++row) {
    const std::int64_t batch = row / s[1];
    const auto score = [&](std::int64_t i) { return scores.number(row * s[2] + i); };
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < s[2]; ++i) {
      if (!node.has(4) || score(i) > node.static_number(4, "score_threshold")) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t a, std::int64_t c) { return score(a) > score(c); });
    std::vector<Box> kept;
    for (std::int64_t i : order) {
      if (static_cast<std::int64_t>(kept.size()) >= most) break;
      const Box box = box_at(boxes, batch * b[1] + i, by_centre);
      const bool is_covered = std::any_of(kept.begin(), kept.end(), [&](const Box& other) {
        return overlaps(other, box, threshold);
      });
      if (is_covered) continue;
      kept.push_back(box);
      chosen.insert(chosen.end(), {batch, row % s[1], i});
    }
  }
  node.out(0, node.constant(
                  HostTensor::from({static_cast<std::int64_t>(chosen.size()) / 3, 3}, chosen)));
}

}  // namespace tandem::importer::operators
