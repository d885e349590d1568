// What operators make of weights of few bits, which stay packed in the graph.
#pragma once

#include "engine/operators/packed/packing.h"
#include "importer/node_context.h"

namespace tandem::importer::operators {

/// Whether input i is a state with the bytes of a packed weight.
bool is_packed(NodeContext& node, std::size_t i);

/// The operands of Unpack.
struct PackedTerms {
  Term data;    // [rows, bytes]
  Term scales;  // in any shape with the right number of elements
  Term zeros;   // the same; absent where all are `zero`
  PackedKind kind = PackedKind::uint8;
  std::int64_t columns = 0, row_block = 1, column_block = 0, zero = 0;
};
/// The matrix as an operand: the node that makes it goes where a product or a lookup reads it.
Term unpacked(NodeContext& node, PackedTerms terms);

/// One byte for each code of `bits` bits in rows of bytes, the lowest bits first.
HostTensor one_a_byte(const HostTensor& packed, std::int64_t columns, int bits);

void dequantize_packed(NodeContext& node);
/// y = x W for a product as quantize_dynamic writes it; W is unpacked instead of x being rounded.
void dynamic_product(NodeContext& node, const DynamicProduct& product);

}  // namespace tandem::importer::operators
