// Products and lookups whose weights have few bits.

#include "importer/operators/packed.h"

namespace tandem::importer::operators::microsoft {
namespace {

PackedKind unsigned_kind(NodeContext& node, std::int64_t bits) {
  switch (bits) {
    case 2:
      return PackedKind::uint2;
    case 4:
      return PackedKind::uint4;
    case 8:
      return PackedKind::uint8;
    default:
      node.unsupported("weights of " + std::to_string(bits) + " bits are not supported",
                       "quantize the model to 2, 4 or 8 bits");
  }
}

// The file's zero points for `rows` x `blocks`: floats, or bytes of several codes each.
Term zero_points(NodeContext& node, std::size_t i, std::int64_t rows, std::int64_t blocks,
                 int bits) {
  const Term& zeros = node.in(i);
  if (is_float(zeros.type.dtype)) return zeros;
  const TensorType wanted{DType::uint8, {rows, (blocks * bits + 7) / 8}};
  if (zeros.type.dtype != wanted.dtype || zeros.type.elements() != wanted.elements())
    node.fail("zero points", to_string(wanted), to_string(zeros.type));
  if (zeros.is_constant())
    return node.constant(one_a_byte(zeros.constant->reshaped(wanted.shape), blocks, bits));
  PackedTerms terms;
  terms.data = node.reshape(zeros, wanted.shape);
  terms.scales = node.scalar(1, DType::float32);
  terms.kind = unsigned_kind(node, bits);
  terms.columns = blocks;
  terms.row_block = 0;
  return unpacked(node, std::move(terms));
}

std::int64_t positive(NodeContext& node, const char* name) {
  const std::int64_t value = node.integer(name);
  if (value < 1)
    node.fail(std::string("attribute '") + name + "'", "1 or more", std::to_string(value));
  return value;
}

void expect_elements(NodeContext& node, std::size_t i, std::int64_t elements, const char* what) {
  const std::int64_t got = node.in(i).type.elements();
  if (got != elements)
    node.fail(std::string("number of elements of ") + what, std::to_string(elements),
              std::to_string(got));
}

// y = x Wᵀ
Term product(NodeContext& node, PackedTerms terms) {
  const Term x = node.widen(node.in(0));
  const Term w = node.transpose(unpacked(node, std::move(terms)), {1, 0});
  return node.make("MatMul", {x, node.cast(w, x.type.dtype)});
}

}  // namespace

// W[n, k] = (code - zero point) scale in blocks of `block_size` numbers along k, the last of which
// may be cut short.
void matmul_nbits(NodeContext& node) {
  const std::int64_t n = positive(node, "N"), k = positive(node, "K");
  const std::int64_t bits = node.integer("bits", 4), block = positive(node, "block_size");
  node.integer("accuracy_level", 0);
  if (node.integer("weight_prepacked", 0) != 0)
    node.unsupported("weights that were arranged for one processor are not supported",
                     "take the file that onnxruntime's quantizer wrote");
  if (node.has(4))
    node.unsupported("g_idx, which orders the rows of the weight, is not supported",
                     "quantize without act_order");
  PackedTerms terms;
  terms.kind = unsigned_kind(node, bits);
  const std::int64_t blocks = (k + block - 1) / block;
  if (block * bits % 8 != 0)
    node.fail("block_size", "whole bytes in a block", std::to_string(block));
  const std::int64_t row_bytes = blocks * (block * bits / 8);
  expect_elements(node, 1, n * row_bytes, "the packed weight");
  terms.data = node.reshape(node.in(1), {n, row_bytes});
  terms.scales = node.in(2);
  if (node.has(3)) terms.zeros = zero_points(node, 3, n, blocks, static_cast<int>(bits));
  terms.columns = k;
  terms.column_block = block;
  terms.zero = std::int64_t{1} << (bits - 1);
  Term y = product(node, std::move(terms));
  if (node.has(5)) y = node.make("Add", {y, node.widen(node.in(5))});
  node.out(0, y);
}

// W[n, k] = table[code] absmax in blocks of `block_size` numbers, as bitsandbytes packs them.
void matmul_bnb4(NodeContext& node) {
  const std::int64_t n = positive(node, "N"), k = positive(node, "K");
  const std::int64_t block = positive(node, "block_size"), type = node.integer("quant_type");
  node.flag("training_mode", false);
  if (!node.flag("transB", true)) node.unsupported("with transB = 0");
  if (type != 0 && type != 1) node.fail("quant_type", "0 (fp4) or 1 (nf4)", std::to_string(type));
  if (k % block != 0 || k % 2 != 0)
    node.unsupported("K = " + std::to_string(k) + " is no multiple of block_size = " +
                         std::to_string(block) + ": blocks go over the ends of rows",
                     "quantize with a block_size that divides K");
  PackedTerms terms;
  terms.kind = type == 0 ? PackedKind::fp4 : PackedKind::nf4;
  expect_elements(node, 1, n * k / 2, "the packed weight");
  terms.data = node.reshape(node.in(1), {n, k / 2});
  terms.scales = node.in(2);
  terms.columns = k;
  terms.column_block = block;
  node.out(0, product(node, std::move(terms)));
}

// Rows of a table that is packed as the weight of MatMulNBits.
void gather_block_quantized(NodeContext& node) {
  const std::int64_t bits = node.integer("bits", 4), block = node.integer("block_size", 128);
  const auto rank = node.rank(0);
  if (rank != 2) node.unsupported("tables of " + std::to_string(rank) + " axes are not supported");
  if (node.axis(node.integer("gather_axis", 0), rank) != 0 ||
      node.axis(node.integer("quantize_axis", 1), rank) != 1)
    node.unsupported("only gather_axis 0 with quantize_axis 1 is supported");
  if (block < 1) node.fail("block_size", "1 or more", std::to_string(block));
  const auto& packed = node.session().file.packed.data;
  const auto found = packed.find(node.node().input(0));
  const std::int32_t type = found == packed.end() ? onnx::TensorProto::UINT8 : found->second;
  PackedTerms terms;
  terms.data = node.in(0);
  terms.scales = node.in(2);
  if (type == onnx::TensorProto::INT4 || type == onnx::TensorProto::UINT4) {
    terms.kind = type == onnx::TensorProto::INT4 ? PackedKind::int4 : PackedKind::uint4;
    if (node.has(3))
      node.unsupported("zero points of 4-bit types are not supported here",
                       "quantize the table to uint8, or symmetrically");
  } else {
    terms.kind = unsigned_kind(node, bits);
    terms.zero = std::int64_t{1} << (bits - 1);
  }
  const int width = packed_format(terms.kind).bits;
  const std::int64_t rows = node.shape(0)[0];
  terms.columns = node.shape(0)[1] * (8 / width);
  terms.column_block = block;
  if (node.has(3))
    terms.zeros = zero_points(node, 3, rows, (terms.columns + block - 1) / block, width);
  const Term table = unpacked(node, std::move(terms));
  node.out(0, node.make("Gather", {table, node.in(1)}, {{"axis", std::int64_t{0}}}));
}

}  // namespace tandem::importer::operators::microsoft
