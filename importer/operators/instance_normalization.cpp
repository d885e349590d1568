// Normalizations over parts of the axes after the first one: of channels and groups of channels
// (LayerNormalization over what a part has, then scale and bias), MeanVarianceNormalization,
// LpNormalization, LRN.
#include <fmt/format.h>

#include <algorithm>

#include "importer/node_context.h"
#include "importer/operators/reductions.h"

namespace tandem::importer::operators {
namespace {

// x [N, C, ...] as `groups` parts for each sample, each with mean 0 and variance 1.
Term normalised_groups(NodeContext& node, const Term& x, std::int64_t groups, double epsilon) {
  const Shape shape = x.type.shape;
  std::int64_t part = shape[1] / groups;
  for (std::size_t i = 2; i < shape.size(); ++i) part *= shape[i];
  const Term parts = node.reshape(x, {shape[0], groups, part});
  const Term ones = node.expand(node.scalar(1, x.type.dtype), {part});
  const Term y = node.make_all("LayerNormalization", {parts, ones},
                               {{"axis", std::int64_t{2}}, {"epsilon", epsilon}})[0];
  return node.reshape(y, shape);
}

// y = x scale + bias, x [N, C, ...], with that many numbers for the channels: one each, or one for
// each group of channels that follow each other.
Term affine(NodeContext& node, const Term& x, std::int64_t numbers) {
  const Shape& shape = x.type.shape;
  Shape channels(shape.size() - 1, 1);
  channels[0] = shape[1];
  const auto operand = [&](std::size_t i, const char* role) {
    if (node.shape(i) != Shape{numbers}) {
      node.fail(role, to_string(Shape{numbers}), to_string(node.shape(i)));
    }
    const Term of_groups = node.reshape(node.cast(node.in(i), x.type.dtype), {numbers, 1});
    return node.reshape(node.expand(of_groups, {numbers, shape[1] / numbers}), channels);
  };
  const Term scaled = node.make("Mul", {x, operand(1, "shape of the scale")});
  return node.make("Add", {scaled, operand(2, "shape of the bias")});
}

void normalize(NodeContext& node, std::int64_t groups, std::int64_t scales) {
  const Term x = node.widen(node.in(0));
  const Term y = normalised_groups(node, x, groups, node.number("epsilon", 1e-5));
  node.out(0, node.cast(affine(node, y, scales), node.dtype(0)));
}

}  // namespace

void instance_normalization(NodeContext& node) {
  if (node.rank(0) < 3) node.fail("input", "[N, C, ...]", to_string(node.shape(0)));
  if (element_count(node.shape(0)) == 0) node.fail("the input has no elements");
  normalize(node, node.shape(0)[1], node.shape(0)[1]);
}

// Until version 21 scale and bias have a number for each group, since then for each channel.
void group_normalization(NodeContext& node) {
  if (node.rank(0) < 2) node.fail("input", "[N, C, ...]", to_string(node.shape(0)));
  if (element_count(node.shape(0)) == 0) node.fail("the input has no elements");
  const std::int64_t channels = node.shape(0)[1], groups = node.integer("num_groups");
  if (groups < 1 || channels % groups != 0) {
    node.fail("num_groups", fmt::format("a divisor of the {} channels", channels),
              std::to_string(groups));
  }
  normalize(node, groups, node.version() < 21 ? groups : channels);
}

// (x - mean) / (deviation + 1e-9) over the axes
void mean_variance_normalization(NodeContext& node) {
  const Ints axes = node.axes(node.integers("axes", {0, 2, 3}), node.rank(0));
  const Term x = node.widen(node.in(0));
  const Attributes over{{"axes", axes}, {"keepdims", std::int64_t{1}}};
  const Term centred = node.make("Sub", {x, node.make("ReduceMean", {x}, over)});
  const Term variance = node.make("ReduceMean", {node.make("Mul", {centred, centred})}, over);
  const Term deviation =
      node.make("Add", {root_of_squares(node, variance), node.scalar(1e-9, x.type.dtype)});
  node.out(0, node.cast(node.make("Div", {centred, deviation}), node.dtype(0)));
}

// x divided by its norm along an axis; 0 where that is 0.
void lp_normalization(NodeContext& node) {
  const std::int64_t axis = node.axis(node.integer("axis", -1), node.rank(0));
  const std::int64_t p = node.integer("p", 2);
  if (p != 1 && p != 2) node.fail("p", "1 or 2", std::to_string(p));
  const Term x = node.widen(node.in(0));
  const Attributes over{{"axes", Ints{axis}}, {"keepdims", std::int64_t{1}}};
  Term norm = p == 1
                  ? node.make("ReduceSum", {node.make("Abs", {x})}, over)
                  : root_of_squares(node, node.make("ReduceSum", {node.make("Mul", {x, x})}, over));
  const Term zero = node.scalar(0, x.type.dtype), one = node.scalar(1, x.type.dtype);
  norm = node.make("Where", {node.make("Equal", {norm, zero}), one, norm});
  node.out(0, node.cast(node.make("Div", {x, norm}), node.dtype(0)));
}

// y = x / (bias + alpha / size * the sum of x^2 over `size` channels around)^beta
void local_response_normalization(NodeContext& node) {
  if (node.rank(0) < 2) node.fail("input", "[N, C, ...]", to_string(node.shape(0)));
  const std::int64_t size = node.integer("size");
  if (size < 1 || size > (1 << 30)) node.fail("size", "1 to 2^30", std::to_string(size));
  const Term x = node.widen(node.in(0));
  const Shape& shape = x.type.shape;
  const std::int64_t rest = element_count(shape) / std::max<std::int64_t>(shape[0] * shape[1], 1);
  const Term squares = node.reshape(node.make("Mul", {x, x}), {shape[0], 1, shape[1], rest});
  const Term means = node.make("AveragePool", {squares},
                               {{"kernel_shape", Ints{size, 1}},
                                {"strides", Ints{1, 1}},
                                {"pads", Ints{(size - 1) / 2, 0, size - 1 - (size - 1) / 2, 0}},
                                {"dilations", Ints{1, 1}},
                                {"ceil_mode", std::int64_t{0}},
                                {"count_include_pad", std::int64_t{1}}});
  const auto number = [&](double value) { return node.scalar(value, x.type.dtype); };
  const Term scaled = node.make("Mul", {means, number(node.number("alpha", 1e-4))});
  const Term base = node.make("Add", {scaled, number(node.number("bias", 1))});
  const Term power = node.make("Pow", {base, number(-node.number("beta", 0.75))});
  node.out(0, node.cast(node.make("Mul", {x, node.reshape(power, shape)}), node.dtype(0)));
}

}  // namespace tandem::importer::operators
