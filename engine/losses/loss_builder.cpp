#include "engine/losses/loss_builder.h"

#include <algorithm>

namespace tandem {
namespace {

/// How integer labels fit scores: with classes on the last axis, or on axis 1.
struct Classes {
  bool fits = false;
  bool last = false;  // [.., C] against [..]
  bool both = false;  // [N, C, C] against [N, C]
};
Classes class_axis(const Shape& logits, const Shape& labels) {
  Classes result;
  if (logits.size() < 2) return result;
  const Shape without_last(logits.begin(), logits.end() - 1);
  Shape without_first = logits;
  without_first.erase(without_first.begin() + 1);
  result.last = labels == without_last;
  const bool first = labels == without_first;
  result.fits = result.last || first;
  result.both = result.last && first && logits.size() > 2;
  return result;
}

Shape squeezed(const Shape& shape) {
  Shape kept;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(kept),
               [](std::int64_t extent) { return extent != 1; });
  return kept;
}

}  // namespace

Ints all_axes(std::size_t rank) {
  Ints axes;
  for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

void LossBuilder::fail(const std::string& message, std::string expected, std::string got,
                       std::string fix) {
  problems_.push_back({"loss \"" + term.name + "\": " + message, term.where.file, term.where.line,
                       term.where.column, "", std::move(expected), std::move(got), std::move(fix)});
}

void LossBuilder::note(const std::string& text) {
  notes_.push_back("loss \"" + term.name + "\": " + text);
}

bool LossBuilder::same_shapes(std::size_t least_rank) {
  const Shape& first = g.shape(values[0]);
  if (first.size() < least_rank) {
    fail("\"" + term.values[0] + "\" has too few axes",
         std::to_string(least_rank) + " or more, the batch first", to_string(first));
    return false;
  }
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (g.shape(values[i]) == first) continue;
    fail("\"" + term.values[i] + "\" does not fit \"" + term.values[0] + "\"", to_string(first),
         to_string(g.shape(values[i])));
    return false;
  }
  return true;
}

std::optional<ValueId> LossBuilder::labels_like(ValueId x) {
  const Shape shape = g.shape(x);
  ValueId fitting = labels;
  if (g.shape(labels) != shape) {
    if (squeezed(shape) != squeezed(g.shape(labels))) {
      fail("\"" + term.labels + "\" does not fit \"" + term.values[0] + "\"", to_string(shape),
           to_string(g.shape(labels)));
      return std::nullopt;
    }
    fitting = g.reshape(labels, shape);
  }
  return g.cast(fitting, g.dtype(x));
}

std::optional<ClassLabels> LossBuilder::class_labels(ValueId scores) {
  if (is_float(g.dtype(labels))) {
    fail("\"" + term.labels + "\" holds no class numbers", "an integer type",
         std::string(name_of(g.dtype(labels))), "end the field's `as` with \"int64\"");
    return std::nullopt;
  }
  const Shape x = g.shape(scores);
  Shape y = g.shape(labels);
  ClassLabels result{scores, labels, 0, {}};
  if (y.size() == x.size() && y.size() >= 2 && y.back() == 1) {  // [B, 1] against [B, C]
    y.pop_back();
    result.labels = g.reshape(labels, y);
  }
  const Classes axis = class_axis(x, y);
  if (!axis.fits) {
    fail("labels do not fit the logits",
         "labels of the logits' shape " + to_string(x) +
             " without the class axis (the last, or axis 1)",
         to_string(y));
    return std::nullopt;
  }
  if (axis.both) {
    note("labels of shape " + to_string(y) + " fit logits of shape " + to_string(x) +
         " with the classes on the last axis and with the classes on axis 1: the last axis is "
         "taken; where the classes are on axis 1, export the model with a Transpose that makes "
         "it the last");
  }
  result.positions = y;
  if (axis.last) {
    const std::int64_t rows = element_count(y);
    result.scores = g.reshape(scores, {rows, x.back()});
    result.labels = g.reshape(result.labels, {rows});
  }
  result.classes = g.shape(result.scores)[1];
  if (g.dtype(labels) != DType::int64 && g.dtype(labels) != DType::int32)
    result.labels = g.cast(result.labels, DType::int64);
  return result;
}

ValueId LossBuilder::along_axis(const std::vector<double>& numbers, std::size_t axis,
                                std::size_t rank, DType dtype) {
  const std::vector<float> values(numbers.begin(), numbers.end());
  Shape shape(rank, 1);
  shape[axis] = static_cast<std::int64_t>(values.size());
  return g.cast(g.constant(HostTensor::from<float>(shape, values)), dtype);
}

ValueId LossBuilder::clip(ValueId x, double low, double high) {
  return g.add_node("Clip", {x}, {{"min", low}, {"max", high}});
}

ValueId LossBuilder::power(ValueId x, double exponent) {
  if (exponent == 1) return x;
  if (exponent == 2) return g.mul(x, x);
  return g.add_node("Pow", {x, g.scalar(exponent, g.dtype(x))});
}

}  // namespace tandem
