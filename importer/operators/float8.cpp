#include "importer/operators/float8.h"

#include "engine/graph/float8.h"
#include "importer/operators/quantization.h"

namespace tandem::importer::operators {
namespace {

/// What ToFloat8 has rounded to x, with the rows that data chooses of x; an empty Term where x
/// comes from elsewhere.
Term rounded_from(NodeContext& node, const Term& x) {
  const Graph& graph = node.session().builder.graph();
  if (x.is_constant() || !x.id || graph.value(x.id).kind != ValueKind::computed) return {};
  const Node& maker = graph.node(graph.value(x.id).producer);
  if (maker.op->name != "ToFloat8") return {};
  Term rounded = node.session().value(maker.inputs[0]);
  rounded.rows = x.rows;
  return rounded;
}

}  // namespace

bool is_quantized_float8(DType dtype) { return is_float8(dtype) && dtype != DType::float8_e8m0fnu; }

Term to_float8(NodeContext& node, const Term& x, DType to, bool saturate,
               const std::string& rounding) {
  return node.make("ToFloat8", {node.cast(x, DType::float32)},
                   {{"to", std::string(name_of(to))},
                    {"saturate", std::int64_t{saturate}},
                    {"rounding", rounding}});
}

// c + (y - c) with c what was rounded, cut to the range, and y what it was rounded to; the bracket
// has no slope. The sum is exact: a number and what it is rounded to are 0, or within a factor of
// two of each other, so that their difference can be written. Outside of the range y is infinite or
// NaN where it does not saturate, and so is the sum.
Term from_float8(NodeContext& node, const Term& x) {
  const Term y = node.make("FromFloat8", {x});
  const Term rounded = rounded_from(node, x);
  if (!rounded.id || !is_quantized_float8(x.type.dtype)) return y;
  const Float8Format format = float8_format(x.type.dtype);
  const double largest = decode_float8(x.type.dtype, static_cast<std::uint8_t>(format.largest));
  const Term inside = cut_to(node, rounded, -largest, largest);
  const Term distance = node.make("Sub", {y, inside});
  return node.make("Add", {inside, node.make("StopGradient", {distance})});
}

Term as_bytes(NodeContext& node, const Term& x) {
  return is_float8(x.type.dtype) ? of_bytes(node, x, DType::uint8) : x;
}

Term of_bytes(NodeContext& node, const Term& bytes, DType dtype) {
  if (bytes.type.dtype == dtype) return bytes;
  return node.make("BitCast", {bytes}, {{"to", std::string(name_of(dtype))}});
}

Term chosen(NodeContext& node, const Term& condition, const Term& x, const Term& y) {
  const DType dtype = x.type.dtype;
  if (!is_float8(dtype) || y.type.dtype != dtype) return node.make("Where", {condition, x, y});
  const Term bytes = node.make("Where", {condition, as_bytes(node, x), as_bytes(node, y)});
  return of_bytes(node, bytes, dtype);
}

}  // namespace tandem::importer::operators
