// What is chosen among elements: NonZero, Compress, Unique, NonMaxSuppression. How many there are
// depends on the values: those are known before the run, or before the stage.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "importer/chosen_rows.h"
#include "importer/file/tensor_data.h"
#include "importer/node_context.h"

namespace tandem::importer::operators {
namespace {

using Tensors = std::vector<HostTensor>;

HostTensor integer_list(const std::vector<std::int64_t>& numbers) {
  return HostTensor::from({static_cast<std::int64_t>(numbers.size())}, numbers);
}

// The coordinates of the elements that are not zero, in row-major order: [rank, elements].
Tensors places_of_non_zero(const Tensors& operands) {
  const HostTensor& x = operands[0];
  const std::size_t rank = x.shape().size();
  std::vector<std::vector<std::int64_t>> places(rank);
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < x.type().elements(); ++i) {
    if (x.number(i) == 0) continue;
    ++count;
    std::int64_t rest = i;
    for (std::size_t d = rank; d-- > 0;) {
      places[d].push_back(rest % x.shape()[d]);
      rest /= x.shape()[d];
    }
  }
  std::vector<std::int64_t> flat;
  for (const auto& axis : places) flat.insert(flat.end(), axis.begin(), axis.end());
  return {HostTensor::from({static_cast<std::int64_t>(rank), count}, flat)};
}

// The coordinates of all elements.
HostTensor numbers_of_places(const Shape& shape) {
  HostTensor all(TensorType{DType::boolean, shape});
  for (bool& each : all.as<bool>()) each = true;
  return places_of_non_zero({all})[0];
}

Tensors places_of_true(const Tensors& operands) {
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < operands[0].type().elements(); ++i) {
    if (operands[0].number(i) != 0) places.push_back(i);
  }
  return {integer_list(places)};
}

void refuse_nested(NodeContext& node, const Term& mask) {
  if (!mask.rows) return;
  node.unsupported(
      "it chooses among the rows that " + mask.rows->cause + " chooses",
      "`eval` and `predict` run it in stages; to train it, choose once, by both masks");
}

std::string cause_of(const NodeContext& node) {
  return node.node().op_type() + " at " + node.path();
}

void note_capacity(NodeContext& node, std::int64_t capacity) {
  node.session().note(node.path(),
                      fmt::format("data chooses among {}: all are computed in each step, and those "
                                  "that it does not choose are left out afterwards",
                                  capacity));
}

constexpr std::int64_t most_place_bytes = std::int64_t{1} << 30;  // limit of a constant made here

// The coordinates of all elements, of which those count that are not zero.
Term all_places(NodeContext& node) {
  const Term& x = node.in(0);
  refuse_nested(node, x);
  const std::int64_t count = x.type.elements();
  const auto rank = static_cast<std::int64_t>(x.type.shape.size());
  if (rank == 0 || count == 0) node.unsupported("its operand has no axis or no elements");
  if (!checked_elements({rank, count, std::int64_t{sizeof(std::int64_t)}}, most_place_bytes)) {
    node.fail("the table of all places is too large",
              fmt::format("at most {} bytes", most_place_bytes), to_string(x.type));
  }
  const HostTensor all = numbers_of_places(x.type.shape);
  const Term valid = node.reshape(node.cast(x, DType::boolean), {count});
  note_capacity(node, count);
  return with_chosen_rows(node.constant(all), 1, node.session().place(valid), cause_of(node));
}

// All slices of x along the axis, of which those count where the condition is true; the others are
// zeros, so that nothing of them, NaN perhaps, is computed with.
Term chosen_along(NodeContext& node, const Term& x, std::int64_t axis, const Term& condition) {
  refuse_nested(node, condition);
  refuse_nested(node, x);
  Shape part = x.type.shape;
  const auto at = static_cast<std::size_t>(axis);
  Term rows = x;
  if (part[at] != condition.type.shape[0]) {
    part[at] = condition.type.shape[0];
    rows = node.make(
        "Slice", {x},
        {{"starts", Ints(part.size(), 0)}, {"sizes", part}, {"steps", Ints(part.size(), 1)}});
  }
  const DType dtype = x.type.dtype;
  if (is_float(dtype) || dtype == DType::int32 || dtype == DType::int64) {
    Shape column(part.size(), 1);
    column[at] = part[at];
    rows = node.make("Where", {node.reshape(condition, column), rows, node.scalar(0, dtype)});
  } else if (part == x.type.shape) {
    rows = node.make("Identity", {x});
  }
  note_capacity(node, part[at]);
  return with_chosen_rows(rows, at, node.session().place(condition), cause_of(node));
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
  const Term& condition = node.in(1);
  if (condition.type.dtype != DType::boolean || condition.type.shape.size() != 1) {
    node.fail("condition", "bool of one axis", to_string(condition.type));
  }
  Term x = node.in(0);
  std::int64_t axis = 0;
  if (node.has_attribute("axis")) {
    axis = node.axis(node.integer("axis", 0), node.rank(0));
  } else {
    x = node.reshape(x, {element_count(x.type.shape)});
  }
  const std::int64_t extent = x.type.shape[static_cast<std::size_t>(axis)];
  if (condition.type.shape[0] > extent) {
    node.fail("length of the condition", fmt::format("at most {}", extent),
              std::to_string(condition.type.shape[0]));
  }
  if (!node.in_stages() && !condition.constant) {
    node.out(0, chosen_along(node, x, axis, condition));
    return;
  }
  const Term places = node.chosen({condition}, 1, places_of_true,
                                  "how long its result is depends on the condition, which must be "
                                  "known before the run")[0];
  node.out(0, node.make("Gather", {x, places}, {{"axis", axis}}));
}

void non_zero(NodeContext& node) {
  if (!node.in_stages() && !node.in(0).constant) {
    node.out(0, all_places(node));
    return;
  }
  node.out(0, node.chosen({node.in(0)}, 1, places_of_non_zero,
                          "is only supported on values that are known before the run")[0]);
}

namespace {

// The first place of each slice that occurs, its number for each slice of x, how often it occurs.
Tensors unique_slices(const HostTensor& given, std::optional<std::int64_t> axis, bool is_sorted) {
  const HostTensor x = axis ? given : given.reshaped({given.type().elements()});
  const Slices slices = slices_of(x, static_cast<std::size_t>(axis.value_or(0)));
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
  std::vector<std::int64_t> ranks(first.size());  // the groups in the order of the result
  std::iota(ranks.begin(), ranks.end(), 0);
  if (!is_sorted) {
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
  return {integer_list(places), integer_list(inverse), integer_list(sizes)};
}

}  // namespace

// Slices that occur, sorted or in the order in which they come; the first place of each, its number
// for each slice of x, and how often it occurs. x has a gradient.
void unique(NodeContext& node) {
  const Term& given = node.in(0);
  std::optional<std::int64_t> axis;
  if (node.has_attribute("axis")) axis = node.axis(node.integer("axis", 0), node.rank(0));
  const bool is_sorted = node.flag("sorted", true);
  const auto make = [axis, is_sorted](const Tensors& x) {
    return unique_slices(x[0], axis, is_sorted);
  };
  const std::vector<Term> found = node.chosen(
      {given}, 3, make,
      "how long its result is depends on its input, which must be known before the run");
  const Term x = axis ? given : node.reshape(given, {given.type.elements()});
  node.out(0, node.make("Gather", {x, found[0]}, {{"axis", axis.value_or(0)}}));
  for (std::size_t i = 0; i < found.size(); ++i) node.out(i + 1, found[i]);
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

struct Suppression {
  bool by_centre = false;
  std::int64_t most = 0;  // boxes of a class
  double overlap = 0;
  std::optional<double> score;  // chosen boxes have larger ones
};

Tensors chosen_boxes(const HostTensor& boxes, const HostTensor& scores, const Suppression& rule) {
  const Shape& s = scores.shape();
  std::vector<std::int64_t> chosen;
  for (std::int64_t row = 0; row < s[0] * s[1]; ++row) {
    const std::int64_t batch = row / s[1];
    const auto score = [&](std::int64_t i) { return scores.number(row * s[2] + i); };
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < s[2]; ++i) {
      if (!rule.score || score(i) > *rule.score) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t a, std::int64_t c) { return score(a) > score(c); });
    std::vector<Box> kept;
    for (std::int64_t i : order) {
      if (static_cast<std::int64_t>(kept.size()) >= rule.most) break;
      const Box box = box_at(boxes, batch * s[2] + i, rule.by_centre);
      const bool is_covered = std::any_of(kept.begin(), kept.end(), [&](const Box& other) {
        return overlaps(other, box, rule.overlap);
      });
      if (is_covered) continue;
      kept.push_back(box);
      chosen.insert(chosen.end(), {batch, row % s[1], i});
    }
  }
  return {HostTensor::from({static_cast<std::int64_t>(chosen.size()) / 3, 3}, chosen)};
}

}  // namespace

// boxes [batches, boxes, 4], scores [batches, classes, boxes] to [chosen, 3]: batch, class, box;
// for each class the boxes with the largest scores that overlap none chosen before them.
void non_max_suppression(NodeContext& node) {
  const Shape &b = node.shape(0), &s = node.shape(1);
  if (b.size() != 3 || b[2] != 4 || s.size() != 3 || s[0] != b[0] || s[2] != b[1]) {
    node.fail("boxes and scores", "[batches, boxes, 4] and [batches, classes, boxes]",
              to_string(b) + " and " + to_string(s));
  }
  Suppression rule;
  rule.by_centre = node.flag("center_point_box", false);
  if (node.has(2)) rule.most = node.static_integer(2, "max_output_boxes_per_class");
  if (node.has(3)) rule.overlap = node.static_number(3, "iou_threshold");
  if (node.has(4)) rule.score = node.static_number(4, "score_threshold");
  const auto make = [rule](const Tensors& x) { return chosen_boxes(x[0], x[1], rule); };
  node.out(0, node.chosen({node.in(0), node.in(1)}, 1, make,
                          "how long its result is depends on boxes and scores, which must be known "
                          "before the run")[0]);
}

}  // namespace tandem::importer::operators
