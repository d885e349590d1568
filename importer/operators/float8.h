// 8-bit floats in the place of numbers and of bytes: conversions whose gradient passes, and moves
// that kernels make by number of bytes.
#pragma once

#include <string>

#include "importer/node_context.h"

namespace tandem::importer::operators {

/// The types that QuantizeLinear makes and DequantizeLinear reads: all but float8_e8m0fnu, which is
/// a type of scales.
bool is_quantized_float8(DType dtype);

/// x, of any type but 8-bit floats, rounded to the 8-bit float `to`, by the rules of ONNX's Cast.
Term to_float8(NodeContext& node, const Term& x, DType to, bool saturate = true,
               const std::string& rounding = "up");

/// The numbers of x, an 8-bit float, in float32. Where they were rounded right before, the gradient
/// passes straight through, but not beyond the range of the type; float8_e8m0fnu lets none through.
Term from_float8(NodeContext& node, const Term& x);

/// 8-bit floats as the same bytes in uint8; x itself of any other type.
Term as_bytes(NodeContext& node, const Term& x);
/// Bytes, as `as_bytes` made them, in their own type again.
Term of_bytes(NodeContext& node, const Term& bytes, DType dtype);
/// condition ? x : y, of 8-bit floats too.
Term chosen(NodeContext& node, const Term& condition, const Term& x, const Term& y);

}  // namespace tandem::importer::operators
