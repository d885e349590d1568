// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear. Where one reads what another has made,
// the numbers stay in floating point, and the gradient passes straight through the rounding, but
// not where the range cuts: so models with fake quantization are trained as in PyTorch. 8-bit
// floats do the same by their own rounding (float8.h); their zero point can only be 0.
#include "importer/operators/quantization.h"

#include <algorithm>
#include <limits>

#include "importer/operators/element_type.h"
#include "importer/operators/float8.h"
#include "importer/operators/packed.h"

namespace tandem::importer::operators {
namespace {

struct Limits {
  double low = 0, high = 0;
};

Limits limits_of(DType dtype) {
  return with_type(dtype, [](auto tag) -> Limits {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      return {static_cast<double>(std::numeric_limits<T>::lowest()),
              static_cast<double>(std::numeric_limits<T>::max())};
    }
    return {};
  });
}

DType quantized_type(NodeContext& node, DType dtype) {
  if (!is_quantized(dtype) && !is_quantized_float8(dtype)) {
    node.unsupported("element type " + std::string(name_of(dtype)) + " is not supported");
  }
  return dtype;
}

// A zero point of 8-bit floats, which only says their type.
void check_no_zero_point(NodeContext& node) {
  if (!node.has(2)) return;
  const HostTensor& zero = node.static_tensor(2, "zero point");
  for (std::int64_t i = 0; i < zero.type().elements(); ++i) {
    if (zero.number(i) == 0) continue;
    node.fail("the zero point of 8-bit floats", "0", std::to_string(zero.number(i)));
  }
}

// The attribute output_dtype; 0, as absent, is the type that is missing.
DType output_type(NodeContext& node, DType missing) {
  const std::int64_t type = node.integer("output_dtype", 0);
  return type == 0 ? missing : element_type(node, type);
}

// A scale or a zero point, shaped to be an operand together with x: one number, one for each
// element of an axis, or one for each block of `block_size` elements along it.
Term beside(NodeContext& node, const Term& value, const Shape& x, DType dtype) {
  const Term numbers = node.cast(value, dtype);
  const Shape& shape = value.type.shape;
  if (element_count(shape) == 1) return node.reshape(numbers, {});
  const auto rank = static_cast<std::int64_t>(x.size());
  const auto axis = static_cast<std::size_t>(node.axis(node.integer("axis", 1), rank));
  std::int64_t block = node.integer("block_size", 0);
  if (block == 0) {
    if (shape != Shape{x[axis]}) {
      node.fail("shape of the scale and zero point", to_string(Shape{x[axis]}), to_string(shape));
    }
    Shape wanted(x.size() - axis, 1);
    wanted[0] = x[axis];
    return node.reshape(numbers, wanted);
  }
  if (block < 1 || block > (1 << 30)) node.fail("block_size", "1 to 2^30", std::to_string(block));
  Shape wanted = x;
  wanted[axis] = (x[axis] + block - 1) / block;
  block = std::min(block, x[axis]);
  if (shape != wanted) {
    node.fail("shape of the scale and zero point", to_string(wanted), to_string(shape));
  }
  Shape apart = shape, repeated = shape, joined = shape;
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis) + 1, 1);
  repeated.insert(repeated.begin() + static_cast<std::ptrdiff_t>(axis) + 1, block);
  joined[axis] *= block;
  const Term all = node.reshape(node.expand(node.reshape(numbers, apart), repeated), joined);
  if (joined == x) return all;
  return node.make(
      "Slice", {all},
      {{"starts", Ints(x.size(), 0)}, {"sizes", Ints(x)}, {"steps", Ints(x.size(), 1)}});
}

// x rounded, halves to even; its slope is 1. The sum is exact: a number's distance to the next
// whole one can be written in its own type.
Term rounded_through(NodeContext& node, const Term& x) {
  const Term distance = node.make("Sub", {node.make("Round", {x}), x});
  return node.make("Add", {x, node.make("StopGradient", {distance})});
}

const Node* producer_of(const Graph& graph, ValueId id, std::string_view op) {
  if (!id || graph.value(id).kind != ValueKind::computed) return nullptr;
  const Node& node = graph.node(graph.value(id).producer);
  return node.op->name == op ? &node : nullptr;
}

// Whether rounded_through has made it, or a zero point was added to that.
bool is_rounded(const Graph& graph, ValueId id) {
  const Node* sum = producer_of(graph, id, "Add");
  if (sum == nullptr) return false;
  return producer_of(graph, sum->inputs[1], "StopGradient") != nullptr ||
         is_rounded(graph, sum->inputs[0]);
}

// Integers as numbers of floating point: those that `saturated` has rounded where they come from
// there, so that a gradient flows.
Term straight_through(NodeContext& node, const Term& x, DType dtype) {
  const Graph& graph = node.session().builder.graph();
  const Node* cast = x.is_constant() || x.rows ? nullptr : producer_of(graph, x.id, "Cast");
  const Node* below = cast != nullptr ? producer_of(graph, cast->inputs[0], "Where") : nullptr;
  const Node* above = below != nullptr ? producer_of(graph, below->inputs[2], "Where") : nullptr;
  if (above == nullptr || !is_rounded(graph, above->inputs[2])) return node.cast(x, dtype);
  return node.cast(node.session().value(cast->inputs[0]), dtype);
}

}  // namespace

bool is_quantized(DType dtype) {
  return dtype == DType::int8 || dtype == DType::uint8 || dtype == DType::int16 ||
         dtype == DType::uint16;
}

Term cut_to(NodeContext& node, const Term& x, double low, double high) {
  const auto bounded = [&](const Term& number, const char* outside, double bound) {
    const Term at = node.scalar(bound, number.type.dtype);
    return node.make("Where", {node.make(outside, {number, at}), at, number});
  };
  return bounded(bounded(x, "Greater", high), "Less", low);
}

Term saturated(NodeContext& node, const Term& x, DType to) {
  const Limits limits = limits_of(to);
  return node.cast(cut_to(node, x, limits.low, limits.high), to);
}

// saturate(round(x / scale) + zero point)
void quantize_linear(NodeContext& node) {
  const DType to =
      quantized_type(node, node.has(2) ? node.dtype(2) : output_type(node, DType::uint8));
  if (node.has(2) && output_type(node, to) != to) {
    node.fail("output_dtype", "the zero point's type", std::string(name_of(output_type(node, to))));
  }
  const Term x =
      is_float(node.dtype(0)) ? node.widen(node.in(0)) : node.cast(node.in(0), DType::float32);
  const DType dtype = x.type.dtype;
  const Term scale = beside(node, node.in(1), x.type.shape, dtype);
  const bool saturates = node.flag("saturate", true);  // integers always do
  const Term ratio = node.make("Div", {x, scale});
  if (is_float8(to)) {
    check_no_zero_point(node);
    node.out(0, to_float8(node, ratio, to, saturates));
    return;
  }
  Term y = rounded_through(node, ratio);
  if (node.has(2)) y = node.make("Add", {y, beside(node, node.in(2), x.type.shape, dtype)});
  node.out(0, saturated(node, y, to));
}

// (x - zero point) scale
void dequantize_linear(NodeContext& node) {
  if (is_packed(node, 0)) return dequantize_packed(node);
  if (!is_quantized(node.dtype(0)) && node.dtype(0) != DType::int32) {
    quantized_type(node, node.dtype(0));
  }
  const Shape shape = node.shape(0);
  const Term scale =
      is_float8(node.dtype(1)) ? node.cast(node.in(1), DType::float32) : node.widen(node.in(1));
  const DType dtype = scale.type.dtype;
  const bool of_floats = is_float8(node.dtype(0));
  Term x = of_floats ? node.cast(from_float8(node, node.in(0)), dtype)
                     : straight_through(node, node.in(0), dtype);
  if (node.has(2) && node.dtype(2) != node.dtype(0)) {
    node.fail("type of the zero point", std::string(name_of(node.dtype(0))),
              std::string(name_of(node.dtype(2))));
  }
  if (of_floats) {
    check_no_zero_point(node);
  } else if (node.has(2)) {
    x = node.make("Sub", {x, beside(node, node.in(2), shape, dtype)});
  }
  const Term y = node.make("Mul", {x, beside(node, scale, shape, dtype)});
  // Scales may be stored in 8 bits, results are not.
  const DType missing = is_float8(node.dtype(1)) ? DType::float32 : node.dtype(1);
  node.out(0, node.cast(y, output_type(node, missing)));
}

// The range is that of x and 0; no gradient flows through it.
void dynamic_quantize_linear(NodeContext& node) {
  const Term x = node.in(0);
  if (x.type.dtype != DType::float32) {
    node.fail("element type", "float32", std::string(name_of(x.type.dtype)));
  }
  Ints axes(x.type.rank());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  const Attributes over{{"axes", axes}, {"keepdims", std::int64_t{0}}};
  const auto number = [&](double value) { return node.scalar(value, DType::float32); };
  const Term still = node.make("StopGradient", {x});
  // The opposite of the least number, and the largest; 0 at least.
  const Term below =
      node.make("Max", {node.make("ReduceMax", {node.make("Neg", {still})}, over), number(0)});
  const Term above = node.make("Max", {node.make("ReduceMax", {still}, over), number(0)});
  const Term range = node.make("Add", {above, below});
  const Term is_empty = node.make("Equal", {range, number(0)});
  const Term scale =
      node.make("Div", {node.make("Where", {is_empty, number(1), range}), number(255)});
  const Term zero =
      saturated(node, node.make("Round", {node.make("Div", {below, scale})}), DType::uint8);
  const Term steps = rounded_through(node, node.make("Div", {x, scale}));
  const Term y = node.make("Add", {steps, node.cast(zero, DType::float32)});
  node.out(0, saturated(node, y, DType::uint8));
  node.out(1, scale);
  node.out(2, zero);
}

}  // namespace tandem::importer::operators
