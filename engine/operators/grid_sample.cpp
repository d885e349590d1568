// y[n, c, o...] = x[n, c] seen at the coordinates grid[n, o...], which name the axes of x from the
// last one on; -1 is an axis' begin, 1 its end (their middles with align_corners).
#include "engine/operators/grid_sample.h"

#include <algorithm>
#include <cmath>

#include "engine/graph/builder.h"
#include "engine/operators/elementwise.h"
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem {
namespace {

constexpr double a = -0.75;  // Keys' cubic convolution

double cubic(double t) {
  t = std::fabs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}
double cubic_slope(double t) {
  const double u = std::fabs(t), sign = t < 0 ? -1 : 1;
  if (u <= 1) return sign * (3 * (a + 2) * u - 2 * (a + 3)) * u;
  return u < 2 ? sign * ((3 * a * u - 10 * a) * u + 8 * a) : 0;
}

// x mirrored at the ends as often as it takes; the direction in which it then goes.
double reflected(double x, double low, double high, double& direction) {
  const double range = high - low;
  if (x >= low && x <= high) return x;
  if (range <= 0) {
    direction = 0;
    return low;
  }
  const double beyond = x < low ? low - x : x - high;
  const double turns = std::floor(beyond / range);
  const double rest = beyond - turns * range;
  const bool goes_back = std::fmod(turns, 2) == 0;
  if (goes_back) direction = -direction;
  return (x < low) == goes_back ? low + rest : high - rest;
}

}  // namespace

GridSampler::GridSampler(const Attributes& attributes)
    : align_corners_(attributes.flag("align_corners")) {
  const std::string& mode = attributes.text("mode");
  const std::string& padding = attributes.text("padding_mode");
  mode_ = mode == "nearest" ? Mode::nearest : mode == "cubic" ? Mode::cubic : Mode::linear;
  padding_ = padding == "border"       ? Padding::border
             : padding == "reflection" ? Padding::reflection
                                       : Padding::zeros;
}

GridTaps GridSampler::taps(double n, std::int64_t extent) const {
  const auto length = static_cast<double>(extent);
  double slope = (align_corners_ ? length - 1 : length) / 2;
  double x = align_corners_ ? (n + 1) / 2 * (length - 1) : ((n + 1) * length - 1) / 2;
  if (std::isnan(x)) x = low(extent);
  x = std::clamp(x, -1e15, 1e15);
  if (mode_ == Mode::nearest) x = std::nearbyint(x);
  if (x < low(extent) || x > high(extent)) {
    // In cubic mode only the taps are held at the border, as in PyTorch and onnxruntime.
    if (padding_ == Padding::border && mode_ != Mode::cubic) {
      x = std::clamp(x, 0.0, length - 1);
      slope = 0;
    } else if (padding_ == Padding::reflection) {
      x = reflected(x, low(extent), high(extent), slope);
    }
  }
  GridTaps result;
  const auto add = [&](double place, double weight, double change) {
    double ignored = 1;
    if (padding_ == Padding::border) place = std::clamp(place, 0.0, length - 1);
    if (padding_ == Padding::reflection) {
      place = std::clamp(reflected(place, low(extent), high(extent), ignored), 0.0, length - 1);
    }
    const bool inside = place >= 0 && place < length;
    result.taps[static_cast<std::size_t>(result.count++)] = {
        inside ? static_cast<std::int64_t>(place) : -1, weight, change * slope};
  };
  const double first = std::floor(x), t = x - first;
  switch (mode_) {
    case Mode::nearest:
      add(std::nearbyint(x), 1, 0);
      break;
    case Mode::linear:
      add(first, 1 - t, -1);
      add(first + 1, t, 1);
      break;
    case Mode::cubic:
      for (int k = -1; k <= 2; ++k) add(first + k, cubic(t - k), cubic_slope(t - k));
      break;
  }
  return result;
}

namespace operators {
namespace {

std::vector<AttributeSpec> grid_attributes() {
  return {{"mode", std::string("linear")},
          {"padding_mode", std::string("zeros")},
          {"align_corners", std::int64_t{0}}};
}

Shape sampled(const NodeView& node, const TensorType& x, const TensorType& grid) {
  const std::string& mode = node.attributes().text("mode");
  if (mode != "nearest" && mode != "linear" && mode != "cubic") {
    node.fail("attribute 'mode'", "nearest, linear or cubic", mode);
  }
  const std::string& padding = node.attributes().text("padding_mode");
  if (padding != "zeros" && padding != "border" && padding != "reflection") {
    node.fail("attribute 'padding_mode'", "zeros, border or reflection", padding);
  }
  require_flag(node, "align_corners");
  const bool fits = x.rank() >= 3 && x.rank() <= 5 && grid.rank() == x.rank() &&
                    grid.shape[0] == x.shape[0] &&
                    grid.shape.back() == static_cast<std::int64_t>(x.rank()) - 2;
  if (!fits) {
    node.fail("x and grid", "[N, C, d...] and [N, o..., axes], of 1 to 3 axes",
              to_string(x.shape) + " and " + to_string(grid.shape));
  }
  if (std::find(x.shape.begin() + 2, x.shape.end(), 0) != x.shape.end()) {
    node.fail("x has no elements to look at");
  }
  Shape y{x.shape[0], x.shape[1]};
  y.insert(y.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
  return y;
}

std::vector<TensorType> infer_grid_sample(const NodeView& node) {
  require_float(node, 0);
  require_same_dtype(node, 1, 0);
  return {{node.input(0).dtype, sampled(node, node.input(0), node.input(1))}};
}

Gradients grid_sample_gradient(GradientContext& c) {
  return c.g.node("GridSampleGrad", {c.dy[0], c.x(0), c.x(1)}, c.node.attributes);
}

std::vector<TensorType> infer_grid_sample_gradient(const NodeView& node) {
  require_float(node, 1);
  require_same_dtype(node, 0, 1);
  require_same_dtype(node, 2, 1);
  require_shape(node, 0, sampled(node, node.input(1), node.input(2)));
  return {node.input(1), node.input(2)};
}

}  // namespace

Operator grid_sample() {
  return {.name = "GridSample",
          .inputs = {{"x"}, {"grid"}},
          .outputs = {{"y"}},
          .attributes = grid_attributes(),
          .infer = infer_grid_sample,
          .gradient = grid_sample_gradient,
          .precision = Precision::float32,  // coordinates
          .drops_elements = true};
}

Operator grid_sample_grad() {
  return {.name = "GridSampleGrad",
          .inputs = {{"dy"}, {"x"}, {"grid"}},
          .outputs = {{"dx"}, {"dgrid"}},
          .attributes = grid_attributes(),
          .infer = infer_grid_sample_gradient,
          .not_differentiable = no_second_gradient,
          .precision = Precision::float32,
          .drops_elements = true,
          .engine_only = true};
}

}  // namespace operators
}  // namespace tandem
