// y[.., o, ..] = the sum over k of w(o, k) x[.., k, ..] along one axis: x seen at the coordinate
// (o + shift) / scale + offset by a linear or cubic filter. filter_scale < 1 stretches the filter
// over the elements that go into a new one (antialias); exclude_outside leaves out those beyond the
// ends, where the first and last one are repeated otherwise. Both make the weights sum up to 1.
#include "engine/operators/resize.h"

#include <algorithm>
#include <cmath>

#include "engine/graph/builder.h"
#include "engine/operators/elementwise.h"
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem {
namespace {

double linear_filter(double t) { return std::max(0.0, 1 - std::fabs(t)); }

// Keys' cubic convolution with parameter a.
double cubic_filter(double t, double a) {
  t = std::fabs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  if (t < 2) return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
  return 0;
}

}  // namespace

// The filter lies around `left`, the last element before the coordinate.
ResizeTaps resize_taps(const Attributes& attributes, std::int64_t extent) {
  const bool cubic = attributes.text("mode") == "cubic";
  const bool excludes = attributes.flag("exclude_outside");
  const double scale = attributes.number("scale"), a = attributes.number("cubic_coeff_a");
  const double shift = attributes.number("shift"), offset = attributes.number("offset");
  const double filter_scale = attributes.number("filter_scale");
  const auto reach = static_cast<std::int64_t>(std::floor(-(cubic ? 2 : 1) / filter_scale)) + 1;
  ResizeTaps taps;
  taps.firsts.push_back(0);
  for (std::int64_t o = 0; o < attributes.integer("size"); ++o) {
    // Further outside, all elements equal the first or last one.
    const double x =
        std::clamp(resize_coordinate(o, scale, shift, offset), static_cast<double>(reach) - 2,
                   static_cast<double>(extent - reach) + 2);
    const auto left = static_cast<std::int64_t>(std::ceil(x)) - 1;
    const std::size_t first = taps.sources.size();
    double sum = 0;
    for (std::int64_t i = left + reach; i <= left + 1 - reach; ++i) {
      const double t = (static_cast<double>(i) - x) * filter_scale;
      const double weight = cubic ? cubic_filter(t, a) : linear_filter(t);
      if (weight == 0 || (excludes && (i < 0 || i >= extent))) continue;
      sum += weight;
      const std::int64_t source = std::clamp<std::int64_t>(i, 0, extent - 1);
      if (taps.sources.size() > first && taps.sources.back() == source) {
        taps.weights.back() += weight;
      } else {
        taps.sources.push_back(source);
        taps.weights.push_back(weight);
      }
    }
    const bool normalises = (excludes || filter_scale < 1) && sum != 0;
    for (std::size_t k = first; k < taps.weights.size(); ++k) {
      if (normalises) taps.weights[k] /= sum;
    }
    taps.firsts.push_back(static_cast<std::int64_t>(taps.sources.size()));
  }
  return taps;
}

ResizeTaps transposed(const ResizeTaps& taps, std::int64_t extent) {
  ResizeTaps result;
  result.firsts.assign(static_cast<std::size_t>(extent) + 1, 0);
  for (std::int64_t source : taps.sources) ++result.firsts[static_cast<std::size_t>(source) + 1];
  for (std::size_t i = 0; i < static_cast<std::size_t>(extent); ++i) {
    result.firsts[i + 1] += result.firsts[i];
  }
  std::vector<std::int64_t> next(result.firsts.begin(), result.firsts.end() - 1);
  result.sources.resize(taps.sources.size());
  result.weights.resize(taps.weights.size());
  for (std::int64_t o = 0; o < taps.count(); ++o) {
    const auto at = static_cast<std::size_t>(o);
    for (std::int64_t k = taps.firsts[at]; k < taps.firsts[at + 1]; ++k) {
      const auto tap = static_cast<std::size_t>(k);
      const auto place =
          static_cast<std::size_t>(next[static_cast<std::size_t>(taps.sources[tap])]++);
      result.sources[place] = o;
      result.weights[place] = taps.weights[tap];
    }
  }
  return result;
}

namespace operators {
namespace {

std::vector<AttributeSpec> resize_attributes(bool with_shape) {
  std::vector<AttributeSpec> specs{{"axis", std::int64_t{0}, true},
                                   {"size", std::int64_t{0}, true},
                                   {"scale", 1.0},
                                   {"shift", 0.0},
                                   {"offset", 0.0},
                                   {"mode", std::string("linear")},
                                   {"cubic_coeff_a", -0.75},
                                   {"exclude_outside", std::int64_t{0}},
                                   {"filter_scale", 1.0}};
  if (with_shape) specs.push_back({"shape", Ints{}, true});
  return specs;
}

// The shape of y.
Shape resized(const NodeView& node, const Shape& x) {
  const std::size_t axis = checked_axis(node, x.size());
  const std::int64_t size = node.attributes().integer("size");
  if (size < 0) node.fail("attribute 'size'", ">= 0", std::to_string(size));
  if (x[axis] < 1 && size > 0) node.fail("nothing to take the new elements from");
  const double scale = node.attributes().number("scale");
  if (std::isnan(scale) || scale == 0) {
    node.fail("attribute 'scale'", "a number other than 0", std::to_string(scale));
  }
  for (const char* name : {"shift", "offset", "cubic_coeff_a"}) {
    require_between(node, name, -1e30, 1e30);
  }
  // The filter covers twice the axis at most.
  if (size > 0) require_between(node, "filter_scale", 0.5 / static_cast<double>(x[axis]), 1);
  const std::string& mode = node.attributes().text("mode");
  if (mode != "linear" && mode != "cubic") node.fail("attribute 'mode'", "linear or cubic", mode);
  Shape shape = x;
  shape[axis] = size;
  return shape;
}

std::vector<TensorType> infer_resize(const NodeView& node) {
  require_float(node, 0);
  return {{node.input(0).dtype, resized(node, node.input(0).shape)}};
}

Gradients resize_gradient(GradientContext& c) {
  Attributes attributes = c.node.attributes;
  attributes.set("shape", c.g.shape(c.x(0)));
  return {c.g.add_node("ResizeGrad", {c.dy[0]}, std::move(attributes))};
}

std::vector<TensorType> infer_resize_gradient(const NodeView& node) {
  require_float(node, 0);
  const Ints& shape = checked_shape(node, "shape");
  require_shape(node, 0, resized(node, shape));
  return {{node.input(0).dtype, shape}};
}

}  // namespace

Operator resize() {
  return {.name = "Resize",
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = resize_attributes(false),
          .infer = infer_resize,
          .gradient = resize_gradient,
          .drops_elements = true};
}

// dx[.., k, ..] = the sum over o of w(o, k) dy[.., o, ..]
Operator resize_grad() {
  return {.name = "ResizeGrad",
          .inputs = {{"dy"}},
          .outputs = {{"dx"}},
          .attributes = resize_attributes(true),
          .infer = infer_resize_gradient,
          .not_differentiable = no_second_gradient,
          .drops_elements = true,
          .engine_only = true};
}

}  // namespace operators
}  // namespace tandem
