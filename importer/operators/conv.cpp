// Conv and ConvTranspose; windows with auto_pad resolved.
#include "importer/operators/window.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::importer::operators {
namespace {

std::string read_auto_pad(NodeContext& node) {
  const std::string automatic = node.text("auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID" && automatic != "SAME_UPPER" &&
      automatic != "SAME_LOWER") {
    node.fail("auto_pad", "NOTSET, VALID, SAME_UPPER or SAME_LOWER", automatic);
  }
  return automatic;
}

// The extents of the weight after its first two.
Ints kernel_of(NodeContext& node) {
  const Shape& x = node.shape(0);
  const Shape& weight = node.shape(1);
  if (x.size() < 3 || x.size() > 5 || weight.size() != x.size()) {
    node.fail("input and weight", "one, two or three spatial axes in both",
              to_string(x) + " and " + to_string(weight));
  }
  const Ints kernel(weight.begin() + 2, weight.end());
  const Ints named = node.integers("kernel_shape", kernel);
  if (named != kernel) {
    node.fail("kernel_shape", "the weight's " + to_string(Shape(kernel)), to_string(Shape(named)));
  }
  return kernel;
}

/// The zeros that PyTorch's exporter gives to a conv3d without a bias: their shape is [M, 2] there,
/// which no bias has, and they add nothing.
bool is_misshapen_nothing(const Term& bias, std::int64_t channels) {
  if (!bias.is_constant() || bias.type.shape == Shape{channels}) return false;
  for (std::int64_t i = 0; i < bias.type.elements(); ++i) {
    if (bias.constant->number(i) != 0) return false;
  }
  return true;
}

/// The result of a transposed convolution along one axis: its extent is what Conv would have had to
/// read; what `pads` cuts off, or adds where negative, and zeros at its end.
struct TransposedAxis {
  std::int64_t extent = 0, pad_begin = 0, pad_end = 0, zeros_begin = 0, zeros_end = 0;
};

// output_shape and auto_pad say what is cut off in all; SAME_UPPER halves it with the odd one at
// the end, everything else with the odd one in front. What is added is added at the end.
TransposedAxis transposed_axis(NodeContext& node, const Windows& windows, std::size_t i) {
  const std::size_t spatial = windows.kernel.size();
  const std::int64_t x = node.shape(0)[i + 2], stride = windows.strides[i];
  const std::int64_t more = node.integers("output_padding", Ints(spatial, 0))[i];
  const std::string automatic = read_auto_pad(node);
  const std::int64_t whole =
      stride * (x - 1) + more + (windows.kernel[i] - 1) * windows.dilations[i] + 1;
  std::int64_t begin = windows.pads[i], end = windows.pads[i + spatial];
  std::optional<std::int64_t> wanted;
  if (const auto shape = node.integers("output_shape")) {
    // Some files name the first two axes, too.
    wanted = (*shape)[i + (shape->size() == spatial + 2 ? 2 : 0)];
  } else if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    wanted = stride * x;
  }
  if (wanted) {
    const std::int64_t total = whole - *wanted, half = std::max<std::int64_t>(total, 0) / 2;
    begin = total < 0 || automatic == "SAME_UPPER" ? half : total - half;
    end = total - begin;
  }
  TransposedAxis axis;
  axis.pad_begin = std::max<std::int64_t>(begin, 0);
  axis.zeros_begin = axis.pad_begin - begin;
  // Zeros after the last window that span a stride or more are not part of the result of Conv's
  // gradient.
  const std::int64_t rest = std::max<std::int64_t>(more - (stride - 1), 0);
  const std::int64_t cut = end - rest;
  axis.pad_end = std::max<std::int64_t>(cut, 0);
  axis.zeros_end = axis.pad_end - cut;
  axis.extent = whole - rest - axis.pad_begin - axis.pad_end;
  if (axis.extent < 1) {
    node.fail("the result has no elements", "an extent of 1 or more", std::to_string(axis.extent));
  }
  return axis;
}

}  // namespace

Windows read_windows(NodeContext& node, const Ints& kernel, bool transposed) {
  constexpr std::int64_t limit = 1 << 30;
  const Shape& x = node.shape(0);
  const std::size_t spatial = x.size() - 2;
  const auto read = [&](const char* name, std::size_t count, std::int64_t missing,
                        std::int64_t low) {
    const Ints values = node.integers(name, Ints(count, missing));
    if (values.size() != count) {
      node.fail(name, fmt::format("{} numbers", count), to_string(Shape(values)));
    }
    for (std::int64_t value : values) {
      if (value < low || value > limit) {
        node.fail(name, fmt::format("numbers from {} to 2^30", low), to_string(Shape(values)));
      }
    }
    return values;
  };
  Windows windows{kernel, read("strides", spatial, 1, 1), read("pads", 2 * spatial, 0, 0),
                  read("dilations", spatial, 1, 1)};
  for (std::int64_t extent : kernel) {
    if (extent < 1 || extent > limit)
      node.fail("kernel_shape", "numbers >= 1", to_string(Shape(kernel)));
  }
  const std::string automatic = read_auto_pad(node);
  if (automatic == "NOTSET") return windows;
  windows.pads.assign(2 * spatial, 0);
  if (automatic == "VALID" || transposed) return windows;
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::int64_t count = (x[i + 2] + windows.strides[i] - 1) / windows.strides[i];
    const std::int64_t reach = (kernel[i] - 1) * windows.dilations[i] + 1;
    const std::int64_t total =
        std::max<std::int64_t>((count - 1) * windows.strides[i] + reach - x[i + 2], 0);
    const std::int64_t more = (total + 1) / 2, less = total / 2;
    windows.pads[i] = automatic == "SAME_UPPER" ? less : more;
    windows.pads[i + spatial] = automatic == "SAME_UPPER" ? more : less;
  }
  return windows;
}

Term convolution(NodeContext& node) {
  const Shape& x = node.shape(0);
  const Shape& weight = node.shape(1);
  const Ints kernel = kernel_of(node);
  const std::int64_t group = node.integer("group", 1);
  if (group < 1 || x[1] % group != 0 || weight[0] % group != 0 || weight[1] != x[1] / group) {
    node.fail("channels", fmt::format("a weight for {} channels in {} groups", x[1], group),
              to_string(weight));
  }
  const Windows windows = read_windows(node, kernel);
  std::vector<Term> inputs{node.widen(node.in(0)), node.widen(node.in(1))};
  if (node.has(2) && !is_misshapen_nothing(node.in(2), weight[0])) {
    inputs.push_back(node.widen(node.in(2)));
  }
  const Term y = node.make("Conv", inputs,
                           {{"strides", windows.strides},
                            {"pads", windows.pads},
                            {"dilations", windows.dilations},
                            {"group", group}});
  return node.cast(y, node.dtype(0));
}

void conv(NodeContext& node) { node.out(0, convolution(node)); }

// The gradient of the convolution that reads its result; weight [C, M / group, k...].
void conv_transpose(NodeContext& node) {
  constexpr std::int64_t limit = 1 << 30;
  const Shape& x = node.shape(0);
  const Shape& weight = node.shape(1);
  const Ints kernel = kernel_of(node);
  const std::size_t spatial = kernel.size();
  const std::int64_t group = node.integer("group", 1);
  if (*std::max_element(x.begin(), x.end()) > limit) {
    node.fail("input", "extents up to 2^30", to_string(x));
  }
  if (group < 1 || x[1] % group != 0 || weight[0] != x[1] || weight[1] < 1 || x[1] < 1 ||
      weight[1] > limit / group) {
    node.fail("channels", fmt::format("a weight for {} channels in {} groups", x[1], group),
              to_string(weight));
  }
  for (const char* name : {"output_padding", "output_shape"}) {
    const Ints values = node.integers(name, Ints(spatial, 0));
    const bool fits = values.size() == spatial ||
                      (values.size() == spatial + 2 && std::string(name) == "output_shape");
    for (std::int64_t value : values) {
      if (!fits || value < 0 || value > limit) {
        node.fail(name, fmt::format("{} numbers from 0 to 2^30", spatial),
                  to_string(Shape(values)));
      }
    }
  }
  const Windows windows = read_windows(node, kernel, true);
  Shape shape{x[0], weight[1] * group};
  Ints pads(2 * spatial), zeros(2 * (spatial + 2), 0);
  for (std::size_t i = 0; i < spatial; ++i) {
    const TransposedAxis axis = transposed_axis(node, windows, i);
    shape.push_back(axis.extent);
    pads[i] = axis.pad_begin;
    pads[i + spatial] = axis.pad_end;
    zeros[i + 2] = axis.zeros_begin;
    zeros[i + spatial + 4] = axis.zeros_end;
  }
  Term y = node.make("ConvGradInput", {node.widen(node.in(0)), node.widen(node.in(1))},
                     {{"strides", windows.strides},
                      {"pads", pads},
                      {"dilations", windows.dilations},
                      {"group", group},
                      {"shape", shape}});
  if (std::any_of(zeros.begin(), zeros.end(), [](std::int64_t n) { return n > 0; })) {
    y = node.make("Pad", {y}, {{"pads", zeros}, {"mode", std::string("constant")}, {"value", 0.0}});
  }
  if (node.has(2)) {
    Shape channels(spatial + 1, 1);
    channels[0] = shape[1];
    if (node.shape(2) != Shape{shape[1]}) {
      node.fail("shape of the bias", to_string(Shape{shape[1]}), to_string(node.shape(2)));
    }
    y = node.make("Add", {y, node.reshape(node.widen(node.in(2)), channels)});
  }
  node.out(0, node.cast(y, node.dtype(0)));
}

}  // namespace tandem::importer::operators
