// Resize and Upsample of every version: one axis after the other. Linear and cubic filters are
// Resize; nearest elements are repeated by Expand where the scale is a whole number that keeps
// them in turn, and else looked up.
#include "engine/operators/resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "importer/file/tensor_data.h"
#include "importer/node_context.h"
#include "importer/operators/rebatch.h"

namespace tandem::importer::operators {
namespace {

constexpr std::int64_t largest_extent = std::int64_t{1} << 24;

/// One axis: its new extent, and where its new elements lie on the old axis.
struct AxisPlan {
  std::int64_t axis = 0, extent = 1, size = 1;
  double given_scale = 1;  // as the file has it, or by the sizes
  double scale = 1, shift = 0, offset = 0;
  bool crops = false;  // elements outside of the old axis are `extrapolation_value`

  double coordinate(std::int64_t o) const { return resize_coordinate(o, scale, shift, offset); }
  bool is_outside(std::int64_t o) const {
    return crops && (coordinate(o) < 0 || coordinate(o) > static_cast<double>(extent - 1));
  }
};

struct Settings {
  std::string mode, coordinates, rounding;
  double cubic_coeff_a = -0.75, extrapolation = 0;
  bool excludes = false, antialias = false;
};

Settings read_settings(NodeContext& node) {
  Settings s;
  const bool upsample = node.node().op_type() == "Upsample" || node.version() < 11;
  s.mode = node.text("mode", "nearest");
  if (s.mode == "bilinear" && node.version() < 9) s.mode = "linear";
  s.coordinates =
      upsample ? "asymmetric" : node.text("coordinate_transformation_mode", "half_pixel");
  s.rounding = upsample ? "floor" : node.text("nearest_mode", "round_prefer_floor");
  s.cubic_coeff_a = node.number("cubic_coeff_a", -0.75);
  s.extrapolation = node.number("extrapolation_value", 0);
  s.excludes = node.flag("exclude_outside", false);
  s.antialias = node.flag("antialias", false);
  if (s.mode != "nearest" && s.mode != "linear" && s.mode != "cubic") {
    node.fail("mode", "nearest, linear or cubic", s.mode);
  }
  if (s.rounding != "round_prefer_floor" && s.rounding != "round_prefer_ceil" &&
      s.rounding != "floor" && s.rounding != "ceil") {
    node.fail("nearest_mode", "round_prefer_floor, round_prefer_ceil, floor or ceil", s.rounding);
  }
  if (s.antialias && s.mode == "nearest") node.fail("antialias", "mode linear or cubic", s.mode);
  return s;
}

// The numbers of an input that is left out where it is absent or empty.
std::vector<double> numbers(NodeContext& node, std::size_t input, const char* role) {
  std::vector<double> values;
  if (!node.has(input)) return values;
  const HostTensor& tensor = node.static_tensor(input, role);
  for (std::int64_t i = 0; i < tensor.type().elements(); ++i) values.push_back(tensor.number(i));
  return values;
}

// Scales: input 1 to version 10 (an attribute of Upsample 7), then input 2; sizes: input 3.
std::vector<double> read_scales(NodeContext& node) {
  if (node.node().op_type() == "Upsample" && node.version() < 9) {
    const onnx::AttributeProto* given = node.attribute("scales");
    if (given == nullptr) node.fail("attribute 'scales' is missing");
    return {given->floats().begin(), given->floats().end()};
  }
  return numbers(node, node.version() < 11 ? 1 : 2, "scales");
}

// Where sizes name all axes, the file's batch is among them.
std::vector<double> read_sizes(NodeContext& node) {
  Ints sizes = node.static_integers(3, "sizes");
  if (!node.has_attribute("axes")) sizes = resize_target(node, sizes);
  return {sizes.begin(), sizes.end()};
}

std::int64_t checked_extent(NodeContext& node, double extent) {
  if (extent >= 0 && extent <= static_cast<double>(largest_extent)) {
    return static_cast<std::int64_t>(extent);
  }
  node.fail("size of an axis", "0 to 2^24", fmt::format("{}", extent));
}

// New extents and scales, by what the file gives and its policy of keeping the proportions.
std::vector<AxisPlan> read_plans(NodeContext& node) {
  Ints axes(static_cast<std::size_t>(node.rank(0)));
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  if (const auto given = node.integers("axes")) {
    axes = *given;
    node.axes(axes, node.rank(0));
  }
  const bool has_sizes = node.version() >= 11 && node.has(3) && node.shape(3) != Shape{0};
  const std::vector<double> scales = has_sizes ? std::vector<double>() : read_scales(node);
  const std::vector<double> sizes = has_sizes ? read_sizes(node) : std::vector<double>();
  const std::size_t count = has_sizes ? sizes.size() : scales.size();
  if (count != axes.size()) {
    node.fail(has_sizes ? "sizes" : "scales", fmt::format("{} numbers", axes.size()),
              std::to_string(count));
  }
  std::vector<AxisPlan> plans(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    AxisPlan& plan = plans[i];
    plan.axis = node.axis(axes[i], node.rank(0));
    plan.extent = node.shape(0)[static_cast<std::size_t>(plan.axis)];
    if (has_sizes) {
      plan.size = checked_extent(node, sizes[i]);
      plan.given_scale = static_cast<double>(plan.size) / static_cast<double>(plan.extent);
    } else {
      if (!(scales[i] > 0)) node.fail("scales", "numbers > 0", fmt::format("{}", scales[i]));
      plan.given_scale = scales[i];
      plan.size = checked_extent(node, std::floor(static_cast<double>(plan.extent) * scales[i]));
    }
    if (plan.extent < 1 && plan.size > 0) node.fail("nothing to take the new elements from");
  }
  const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || !has_sizes || plans.empty()) return plans;
  if (policy != "not_larger" && policy != "not_smaller") {
    node.fail("keep_aspect_ratio_policy", "stretch, not_larger or not_smaller", policy);
  }
  double scale = plans[0].given_scale;
  for (const AxisPlan& plan : plans) {
    scale = policy == "not_larger" ? std::min(scale, plan.given_scale)
                                   : std::max(scale, plan.given_scale);
  }
  for (AxisPlan& plan : plans) {
    plan.given_scale = scale;
    plan.size = checked_extent(node, std::floor(scale * static_cast<double>(plan.extent) + 0.5));
  }
  return plans;
}

// Where new element o lies: (o + shift) / scale + offset. `length` is what the new axis would have
// before it is rounded to whole elements.
void set_coordinates(NodeContext& node, const Settings& settings, AxisPlan& plan, double roi_start,
                     double roi_end) {
  const std::string& mode = settings.coordinates;
  const double infinity = std::numeric_limits<double>::infinity();
  const auto last = static_cast<double>(plan.extent - 1), size = static_cast<double>(plan.size);
  double length = plan.given_scale * static_cast<double>(plan.extent);
  if (std::fabs(length - size) < 1e-9 * size) length = size;
  plan.scale = plan.given_scale;
  if (mode == "asymmetric") return;
  if (mode == "align_corners") {  // all are 0 where there is one only
    plan.scale = length != 1 && last > 0 ? (length - 1) / last : infinity;
  } else if (mode == "tf_crop_and_resize") {
    const double range = (roi_end - roi_start) * last;
    plan.crops = true;
    plan.offset = roi_start * last + (length == 1 ? range / 2 : 0);
    plan.scale = length != 1 && range != 0 ? (length - 1) / range : infinity;
  } else if (mode == "half_pixel" || (mode == "pytorch_half_pixel" && length > 1)) {
    plan.shift = 0.5;
    plan.offset = -0.5;
  } else if (mode == "tf_half_pixel_for_nn") {  // in versions 11 and 12
    plan.shift = 0.5;
  } else if (mode == "half_pixel_symmetric") {
    plan.shift = 0.5;
    plan.offset = static_cast<double>(plan.extent) / 2 * (1 - size / length) - 0.5;
  } else if (mode != "pytorch_half_pixel") {
    node.fail("coordinate_transformation_mode",
              "half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric, "
              "tf_half_pixel_for_nn or tf_crop_and_resize",
              mode);
  }
}

std::int64_t nearest(const AxisPlan& plan, const std::string& rounding, std::int64_t o) {
  const double last = static_cast<double>(plan.extent - 1);
  const double x = std::clamp(plan.coordinate(o), -1.0, last + 1);
  double place = 0;
  if (rounding == "floor") {
    place = std::floor(x);
  } else if (rounding == "ceil") {
    place = std::ceil(x);
  } else if (rounding == "round_prefer_floor") {
    place = std::ceil(x - 0.5);
  } else {
    place = std::floor(x + 0.5);
  }
  return static_cast<std::int64_t>(std::clamp(place, 0.0, last));
}

// Repeats each element `times` times, by Reshape, Expand, Reshape.
Term repeated(NodeContext& node, const Term& x, std::int64_t axis, std::int64_t times) {
  Shape apart = x.type.shape, joined = x.type.shape;
  apart.insert(apart.begin() + axis + 1, 1);
  Shape wide = apart;
  wide[static_cast<std::size_t>(axis + 1)] = times;
  joined[static_cast<std::size_t>(axis)] *= times;
  return node.reshape(node.expand(node.reshape(x, apart), wide), joined);
}

Term take_nearest(NodeContext& node, const Term& x, const AxisPlan& plan,
                  const std::string& rounding) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(plan.size));
  const std::int64_t times = plan.extent > 0 ? plan.size / plan.extent : 0;
  bool repeats = times * plan.extent == plan.size, same = plan.size == plan.extent;
  for (std::int64_t o = 0; o < plan.size; ++o) {
    const std::int64_t place = nearest(plan, rounding, o);
    places[static_cast<std::size_t>(o)] = place;
    repeats = repeats && place == o / std::max<std::int64_t>(times, 1);
    same = same && place == o;
  }
  if (same) return x;
  if (repeats && times > 0) return repeated(node, x, plan.axis, times);
  return node.make("Gather", {x, node.constant(HostTensor::from({plan.size}, places))},
                   {{"axis", plan.axis}});
}

Term filtered(NodeContext& node, const Term& x, const AxisPlan& plan, const Settings& settings) {
  const bool same = plan.size == plan.extent && plan.scale == 1 && plan.shift + plan.offset == 0;
  if (same) return x;
  const double filter_scale = settings.antialias ? std::min(plan.given_scale, 1.0) : 1.0;
  return node.make("Resize", {x},
                   {{"axis", plan.axis},
                    {"size", plan.size},
                    {"scale", plan.scale},
                    {"shift", plan.shift},
                    {"offset", plan.offset},
                    {"mode", settings.mode},
                    {"cubic_coeff_a", settings.cubic_coeff_a},
                    {"exclude_outside", std::int64_t{settings.excludes}},
                    {"filter_scale", filter_scale}});
}

// extrapolation_value where a new element lies outside of the old axis.
Term cropped(NodeContext& node, const Term& x, const AxisPlan& plan, double value) {
  Shape shape(x.type.rank(), 1);
  shape[static_cast<std::size_t>(plan.axis)] = plan.size;
  HostTensor outside(TensorType{DType::boolean, shape});
  bool any = false;
  for (std::int64_t o = 0; o < plan.size; ++o) {
    outside.as<bool>()[static_cast<std::size_t>(o)] = plan.is_outside(o);
    any = any || plan.is_outside(o);
  }
  if (!any) return x;
  return node.make("Where", {node.constant(outside), node.scalar(value, x.type.dtype), x});
}

// Tables of places are made before any node that would be refused for its size.
void check_size(NodeContext& node, const std::vector<AxisPlan>& plans) {
  Shape shape = node.shape(0);
  for (const AxisPlan& plan : plans) shape[static_cast<std::size_t>(plan.axis)] = plan.size;
  const auto bytes = static_cast<std::int64_t>(size_of(node.dtype(0)));
  if (checked_elements(shape, node.session().file.limits.tensor_bytes / bytes)) return;
  node.fail("the result is too large", "", to_string(shape));
}

}  // namespace

void resize(NodeContext& node) {
  const Settings settings = read_settings(node);
  std::vector<AxisPlan> plans = read_plans(node);
  check_size(node, plans);
  std::vector<double> roi;
  if (settings.coordinates == "tf_crop_and_resize") {
    roi = numbers(node, 1, "roi");
    if (roi.size() != 2 * plans.size()) {
      node.fail("roi", fmt::format("{} numbers", 2 * plans.size()), std::to_string(roi.size()));
    }
  }
  const DType dtype = node.dtype(0);
  const bool filters = settings.mode != "nearest";
  const bool exact = dtype == DType::float32 || dtype == DType::float64;
  const bool halves = dtype == DType::float16 || dtype == DType::bfloat16;
  // Integers are computed in double, and cut off.
  Term x = !filters || exact ? node.in(0)
                             : node.cast(node.in(0), halves ? DType::float32 : DType::float64);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    AxisPlan& plan = plans[i];
    set_coordinates(node, settings, plan, roi.empty() ? 0 : roi[i],
                    roi.empty() ? 1 : roi[plans.size() + i]);
    x = filters ? filtered(node, x, plan, settings)
                : take_nearest(node, x, plan, settings.rounding);
  }
  for (const AxisPlan& plan : plans) x = cropped(node, x, plan, settings.extrapolation);
  x = node.cast(x, dtype);
  const bool made = x.id != node.in(0).id || x.is_constant();
  node.out(0, made ? x : node.make("Identity", {x}));
}

}  // namespace tandem::importer::operators
