// MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv: products of small integers, computed
// exactly in floating point.

#include "importer/operators/quantization.h"
#include "importer/operators/window.h"

namespace tandem::importer::operators {
namespace {

// A type that holds sums of `terms` products of 8 bits exactly, in whatever order.
DType exact_for(std::int64_t terms) { return terms <= 256 ? DType::float32 : DType::float64; }

// A scale or zero point: one number, or a list of them along `axis` of an operand, counted from its
// end; more axes are the operand's own.
Term along(NodeContext& node, std::size_t i, DType dtype, std::size_t axis) {
  const Term numbers = node.cast(node.in(i), dtype);
  const Shape& shape = numbers.type.shape;
  if (element_count(shape) == 1) return node.reshape(numbers, {});
  if (shape.size() != 1) return numbers;
  Shape wanted(axis, 1);
  wanted[0] = shape[0];
  return node.reshape(numbers, wanted);
}

// Operand i less its zero point, which may be absent.
Term centred(NodeContext& node, std::size_t i, std::size_t zero_point, DType dtype,
             std::size_t axis) {
  if (!is_quantized(node.dtype(i)) || size_of(node.dtype(i)) != 1) {
    node.fail("element type", "int8 or uint8", std::string(name_of(node.dtype(i))));
  }
  const Term x = node.cast(node.in(i), dtype);
  if (!node.has(zero_point)) return x;
  return node.make("Sub", {x, along(node, zero_point, dtype, axis)});
}

std::int64_t inner_extent(NodeContext& node, std::size_t i) {
  if (node.rank(i) < 1) node.fail("rank of the operand", "1 or more", "0");
  return node.shape(i).back();
}

// A list of numbers for a has one for each of its rows, for b one for each of its columns.
Term product(NodeContext& node, std::size_t a, std::size_t a_zero, std::size_t b,
             std::size_t b_zero) {
  const DType dtype = exact_for(inner_extent(node, a));
  return node.make("MatMul",
                   {centred(node, a, a_zero, dtype, 2), centred(node, b, b_zero, dtype, 1)});
}

Term convolution(NodeContext& node, std::size_t x, std::size_t x_zero, std::size_t w,
                 std::size_t w_zero) {
  const Shape &shape = node.shape(x), &weight = node.shape(w);
  if (shape.size() < 3 || shape.size() > 5 || weight.size() != shape.size()) {
    node.fail("input and weight", "one, two or three spatial axes in both",
              to_string(shape) + " and " + to_string(weight));
  }
  const Ints kernel(weight.begin() + 2, weight.end());
  if (node.integers("kernel_shape", kernel) != kernel) {
    node.fail("kernel_shape", "the weight's " + to_string(Shape(kernel)));
  }
  const Windows windows = read_windows(node, kernel);
  const DType dtype = exact_for(weight[1] * element_count(kernel));
  return node.make(
      "Conv", {centred(node, x, x_zero, dtype, 1), centred(node, w, w_zero, dtype, weight.size())},
      {{"strides", windows.strides},
       {"pads", windows.pads},
       {"dilations", windows.dilations},
       {"group", node.integer("group", 1)}});
}

// The sums as a quantized result: saturate(round(sums x_scale w_scale / y_scale) + zero point).
// A list of scales for w lies along `axis` of the result, counted from its end.
void requantize(NodeContext& node, const Term& sums, std::size_t x_scale_axis, std::size_t axis) {
  const DType to = node.has(7) ? node.dtype(7) : node.dtype(0);
  if (!is_quantized(to)) {
    node.fail("type of the result", "int8 or uint8", std::string(name_of(to)));
  }
  const DType dtype = DType::float64;
  const Term scales = node.make(
      "Mul", {along(node, 1, DType::float32, x_scale_axis), along(node, 4, DType::float32, axis)});
  const Term factor = node.make("Div", {scales, along(node, 6, DType::float32, x_scale_axis)});
  Term y = node.make("Mul", {node.cast(sums, dtype), node.cast(factor, dtype)});
  y = node.make("Round", {y});
  if (node.has(7)) y = node.make("Add", {y, along(node, 7, dtype, x_scale_axis)});
  node.out(0, saturated(node, y, to));
}

}  // namespace

void matmul_integer(NodeContext& node) {
  node.out(0, node.cast(product(node, 0, 2, 1, 3), DType::int32));
}

void conv_integer(NodeContext& node) {
  node.out(0, node.cast(convolution(node, 0, 2, 1, 3), DType::int32));
}

void qlinear_matmul(NodeContext& node) { requantize(node, product(node, 0, 2, 3, 5), 2, 1); }

// The bias is in units of x_scale w_scale.
void qlinear_conv(NodeContext& node) {
  Term sums = convolution(node, 0, 2, 3, 5);
  const std::size_t axes = node.shape(3).size() - 1;  // axes of the result, from the channels on
  if (node.has(8)) {
    sums =
        node.make("Add", {node.cast(sums, DType::float64), along(node, 8, DType::float64, axes)});
  }
  requantize(node, sums, 1, axes);
}

}  // namespace tandem::importer::operators
