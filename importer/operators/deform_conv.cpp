// DeformConv: samples of the input at places that are moved, times the weight. Sampling is
// GridSample's, so are the gradients of input and offsets.
#include <fmt/format.h>

#include "importer/file/tensor_data.h"
#include "importer/operators/window.h"

namespace tandem::importer::operators {
namespace {

struct Deformed {
  Windows windows;
  Shape extents, results;  // spatial extents of the input and of the result
  std::int64_t taps = 1, places = 1, group = 1, offset_group = 1;
};

Deformed read(NodeContext& node) {
  constexpr std::int64_t most = 1 << 23;
  const Shape &x = node.shape(0), &weight = node.shape(1), &offset = node.shape(2);
  if (x.size() < 3 || x.size() > 5 || weight.size() != x.size() || offset.size() != x.size()) {
    node.fail("operands", "one, two or three spatial axes in all",
              to_string(x) + ", " + to_string(weight) + " and " + to_string(offset));
  }
  Deformed d;
  const Ints kernel(weight.begin() + 2, weight.end());
  if (node.integers("kernel_shape", kernel) != kernel) {
    node.fail("kernel_shape", "the weight's " + to_string(Shape(kernel)));
  }
  d.windows = read_windows(node, kernel);
  d.extents.assign(x.begin() + 2, x.end());
  d.results.assign(offset.begin() + 2, offset.end());
  d.taps = element_count(kernel);
  d.places = element_count(d.results);
  d.group = node.integer("group", 1);
  d.offset_group = node.integer("offset_group", 1);
  const std::size_t axes = kernel.size();
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t room = x[i + 2] + d.windows.pads[i] + d.windows.pads[i + axes] -
                              (kernel[i] - 1) * d.windows.dilations[i] - 1;
    const std::int64_t count = room < 0 ? 0 : room / d.windows.strides[i] + 1;
    if (x[i + 2] < 1 || d.results[i] != count) {
      node.fail("extents of the offsets", std::to_string(count), to_string(d.results));
    }
  }
  if (!checked_elements({d.taps, d.places}, most)) {
    node.fail("the samples are too many", "2^23 in all", to_string(d.results));
  }
  if (d.group < 1 || x[1] % d.group != 0 || weight[0] % d.group != 0 ||
      weight[1] != x[1] / d.group || x[1] < 1) {
    node.fail("channels", fmt::format("a weight for {} channels in {} groups", x[1], d.group),
              to_string(weight));
  }
  if (d.offset_group < 1 || x[1] % d.offset_group != 0) {
    node.fail("offset_group", fmt::format("a divisor of the {} channels", x[1]),
              std::to_string(d.offset_group));
  }
  Shape wanted = offset;
  wanted[0] = x[0];
  wanted[1] = d.offset_group * d.taps * static_cast<std::int64_t>(axes);
  if (offset != wanted) node.fail("shape of the offsets", to_string(wanted), to_string(offset));
  wanted[1] = d.offset_group * d.taps;
  if (node.has(4) && node.shape(4) != wanted) {
    node.fail("shape of the mask", to_string(wanted), to_string(node.shape(4)));
  }
  return d;
}

// The places of all taps without offsets, [taps places, axes], last axis first, in GridSample's
// coordinates: (2 p + 1) / extent - 1.
HostTensor plain_places(const Deformed& d) {
  const std::size_t axes = d.extents.size();
  std::vector<double> numbers;
  for (std::int64_t tap = 0; tap < d.taps; ++tap) {
    for (std::int64_t place = 0; place < d.places; ++place) {
      std::int64_t of_tap = tap, of_place = place;
      for (std::size_t i = axes; i-- > 0;) {
        const std::int64_t at = (of_place % d.results[i]) * d.windows.strides[i] -
                                d.windows.pads[i] +
                                (of_tap % d.windows.kernel[i]) * d.windows.dilations[i];
        of_tap /= d.windows.kernel[i];
        of_place /= d.results[i];
        numbers.push_back(static_cast<double>(2 * at + 1) / static_cast<double>(d.extents[i]) - 1);
      }
    }
  }
  return HostTensor::from({d.taps * d.places, static_cast<std::int64_t>(axes)}, numbers);
}

// What is added to them: offsets [N, groups taps axes, results...], first axis first, in elements.
Term moves(NodeContext& node, const Deformed& d, DType dtype) {
  const auto axes = static_cast<std::int64_t>(d.extents.size());
  const std::int64_t groups = node.shape(0)[0] * d.offset_group;
  const Term apart = node.transpose(
      node.reshape(node.cast(node.in(2), dtype), {groups, d.taps, axes, d.places}), {0, 1, 3, 2});
  const Term turned = node.make("Slice", {apart},
                                {{"starts", Ints{0, 0, 0, axes - 1}},
                                 {"sizes", Ints{groups, d.taps, d.places, axes}},
                                 {"steps", Ints{1, 1, 1, -1}}});
  std::vector<double> units;
  for (std::size_t i = d.extents.size(); i-- > 0;) {
    units.push_back(2 / static_cast<double>(d.extents[i]));
  }
  const Term unit = node.constant(HostTensor::from({axes}, units).converted(dtype));
  return node.reshape(node.make("Mul", {turned, unit}), {groups, d.taps * d.places, axes});
}

}  // namespace

// x, weight [M, C / group, k...], offset, bias?, mask?
void deform_conv(NodeContext& node) {
  const Deformed d = read(node);
  const Term x = node.widen(node.in(0));
  const DType dtype = x.type.dtype;
  const std::int64_t batch = x.type.shape[0], channels = x.type.shape[1];
  const std::int64_t groups = batch * d.offset_group, own = channels / d.offset_group;
  const std::int64_t results = node.shape(1)[0];
  const Term grid =
      node.make("Add", {moves(node, d, dtype), node.constant(plain_places(d).converted(dtype))});
  // As many axes as GridSample wants, all but one of extent 1.
  Shape places{groups, d.taps * d.places};
  places.resize(d.extents.size() + 1, 1);
  places.push_back(static_cast<std::int64_t>(d.extents.size()));
  Shape of_groups{groups, own};
  of_groups.insert(of_groups.end(), d.extents.begin(), d.extents.end());
  Term samples = node.make("GridSample", {node.reshape(x, of_groups), node.reshape(grid, places)},
                           {{"mode", std::string("linear")},
                            {"padding_mode", std::string("zeros")},
                            {"align_corners", std::int64_t{0}}});
  if (node.has(4)) {
    const Term mask = node.reshape(node.cast(node.in(4), dtype), {groups, 1, d.taps * d.places});
    samples = node.make("Mul", {node.reshape(samples, {groups, own, d.taps * d.places}), mask});
  }
  const std::int64_t inner = channels / d.group * d.taps;
  const Term columns = node.reshape(samples, {batch, d.group, inner, d.places});
  const Term weight =
      node.reshape(node.cast(node.in(1), dtype), {d.group, results / d.group, inner});
  Shape shape{batch, results};
  shape.insert(shape.end(), d.results.begin(), d.results.end());
  Term y = node.reshape(node.make("MatMul", {weight, columns}), shape);
  if (node.has(3)) {
    if (node.shape(3) != Shape{results}) {
      node.fail("shape of the bias", to_string(Shape{results}), to_string(node.shape(3)));
    }
    Shape beside(d.extents.size() + 1, 1);
    beside[0] = results;
    y = node.make("Add", {y, node.reshape(node.cast(node.in(3), dtype), beside)});
  }
  node.out(0, node.cast(y, node.dtype(0)));
}

}  // namespace tandem::importer::operators
