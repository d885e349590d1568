#include "importer/operators/packed.h"

#include <algorithm>

#include "engine/graph/text.h"

namespace tandem::importer::operators {
namespace {

PackedKind kind_of(std::int32_t onnx_type) {
  switch (onnx_type) {
    case onnx::TensorProto::INT4:
      return PackedKind::int4;
    case onnx::TensorProto::UINT4:
      return PackedKind::uint4;
    case onnx::TensorProto::INT8:
      return PackedKind::int8;
    default:
      return PackedKind::uint8;
  }
}

// Scales and zero points of the rows (axis 0) or columns (axis 1) of a matrix, or of blocks along
// one of them; or one number.
void set_blocks(NodeContext& node, PackedTerms& terms, std::int64_t axis, std::int64_t block) {
  const Shape& shape = terms.scales.type.shape;
  const std::int64_t rows = terms.data.type.shape[0];
  const std::int64_t extent = axis == 0 ? rows : terms.columns;
  Shape wanted{extent};
  if (element_count(shape) == 1) {
    terms.row_block = terms.column_block = 0;
    return;
  }
  if (block > 0) {
    wanted = {rows, terms.columns};
    wanted[static_cast<std::size_t>(axis)] = (extent + block - 1) / block;
  }
  if (shape != wanted)
    node.fail("shape of the scale and zero point", to_string(wanted), to_string(shape));
  terms.row_block = axis == 0 ? std::max<std::int64_t>(block, 1) : block > 0 ? 1 : 0;
  terms.column_block = axis == 1 ? std::max<std::int64_t>(block, 1) : block > 0 ? 1 : 0;
}

}  // namespace

bool is_packed(NodeContext& node, std::size_t i) {
  return node.scope().main && !node.in(i).is_constant() &&
         node.session().file.packed.data.contains(node.node().input(static_cast<int>(i)));
}

Term unpacked(NodeContext& node, PackedTerms terms) {
  Packing packing;
  packing.rows = terms.data.type.shape[0];
  packing.columns = terms.columns;
  packing.row_block =
      terms.row_block == 0 ? std::max<std::int64_t>(packing.rows, 1) : terms.row_block;
  packing.column_block =
      terms.column_block == 0 ? std::max<std::int64_t>(packing.columns, 1) : terms.column_block;
  const Shape wanted{packing.scale_rows(), packing.scale_columns()};
  const auto fitted = [&](const Term& term, const char* what) {
    if (term.type.elements() != element_count(wanted))
      node.fail(std::string("number of ") + what, std::to_string(element_count(wanted)),
                std::to_string(term.type.elements()));
    return node.reshape(term, wanted);
  };
  std::vector<Term> inputs{terms.data, fitted(terms.scales, "scales")};
  const bool has_zeros = terms.zeros.is_constant() || terms.zeros.id;
  if (has_zeros) inputs.push_back(fitted(terms.zeros, "zero points"));
  return node.make("Unpack", inputs,
                   {{"kind", std::string(packed_format(terms.kind).name)},
                    {"columns", terms.columns},
                    {"row_block", terms.row_block},
                    {"column_block", terms.column_block},
                    {"zero", terms.zero}});
}

HostTensor one_a_byte(const HostTensor& packed, std::int64_t columns, int bits) {
  const std::int64_t in_byte = 8 / bits, bytes = packed.shape().back();
  const std::int64_t rows = bytes == 0 ? 0 : packed.type().elements() / bytes;
  HostTensor result(TensorType{DType::uint8, {rows, columns}});
  const auto* const from = static_cast<const std::uint8_t*>(packed.data());
  auto* const to = static_cast<std::uint8_t*>(result.data());
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const std::int64_t c = i % columns;
    const int byte = from[i / columns * bytes + c / in_byte];
    to[i] = static_cast<std::uint8_t>((byte >> (c % in_byte * bits)) & ((1 << bits) - 1));
  }
  return result;
}

void dequantize_packed(NodeContext& node) {
  PackedTerms terms;
  terms.data = node.in(0);
  terms.scales = node.in(1);
  if (node.has(2)) terms.zeros = node.in(2);
  terms.kind = kind_of(node.session().file.packed.data.at(node.node().input(0)));
  const std::int64_t bytes = terms.data.type.shape[1];
  terms.columns = bytes * (8 / packed_format(terms.kind).bits);
  const std::int64_t axis = node.axis(node.integer("axis", 1), 2);
  const std::int64_t block = node.integer("block_size", 0);
  if (block < 0) node.fail("block_size", "0 or more", std::to_string(block));
  node.integer("output_dtype", 0);
  set_blocks(node, terms, axis, block);
  node.out(0, unpacked(node, std::move(terms)));
}

void dynamic_product(NodeContext& node, const DynamicProduct& product) {
  const auto term = [&](const std::string& name) { return *node.scope().find(name); };
  PackedTerms terms;
  terms.data = term(product.weight);
  terms.scales = term(product.scale);
  if (!product.zero_point.empty()) terms.zeros = term(product.zero_point);
  terms.kind = kind_of(node.session().file.packed.data.at(product.weight));
  terms.columns = terms.data.type.shape[1];
  set_blocks(node, terms, 1, 0);
  const Term x = node.widen(term(product.x));
  node.session().note(node.path(),
                      "the file rounds x to 8 bits before this product; here x stays as it is");
  node.out(0, node.make("MatMul", {x, unpacked(node, std::move(terms))}));
}

}  // namespace tandem::importer::operators
