// LayerNormalization and its root-mean-square form, of sums and of looked-up embeddings.
#include "importer/node_context.h"
#include "importer/operators/rms.h"

namespace tandem::importer::operators {

void layer_normalization(NodeContext& node);
void rms_normalization(NodeContext& node);

namespace microsoft {
namespace {

constexpr double skip_epsilon = 1e-12;  // onnxruntime's default in operators that add first

// x + input 1 + input `bias`, where that is there.
Term sum_of(NodeContext& node, std::size_t bias) {
  const Term sum = node.make("Add", {node.in(0), node.in(1)});
  return node.has(bias) ? node.make("Add", {sum, node.in(bias)}) : sum;
}

std::vector<Term> normalised(NodeContext& node, const Term& x, std::size_t scale,
                             std::size_t bias) {
  std::vector<Term> inputs{x, node.in(scale)};
  if (node.has(bias)) inputs.push_back(node.in(bias));
  return node.make_all("LayerNormalization", inputs,
                       {{"axis", static_cast<std::int64_t>(x.type.rank()) - 1},
                        {"epsilon", node.number("epsilon", skip_epsilon)}});
}

}  // namespace

void layer_normalization(NodeContext& node) {
  if (node.integer("stash_type", 1) != 1) node.unsupported("a stash_type other than 1, float32");
  operators::layer_normalization(node);
}

void simplified_layer_normalization(NodeContext& node) { rms_normalization(node); }

void skip_layer_normalization(NodeContext& node) {
  const Term sum = sum_of(node, 4);
  const std::vector<Term> results = normalised(node, sum, 2, 3);
  for (std::size_t i = 0; i < 3; ++i) node.out(i, results[i]);
  node.out(3, sum);
}

void skip_simplified_layer_normalization(NodeContext& node) {
  const Term sum = sum_of(node, 3);
  const Term x = node.widen(sum);
  const auto axis = static_cast<std::int64_t>(x.type.rank()) - 1;
  const Term factor = reciprocal_rms(node, x, axis, node.number("epsilon", skip_epsilon));
  const Term y = node.cast(node.make("Mul", {x, factor}), sum.type.dtype);
  node.out(0, node.make("Mul", {y, node.in(2)}));
  node.out(2, factor);
  node.out(3, sum);
}

// Sums of looked-up rows of words, positions and segments, normalised.
void embed_layer_normalization(NodeContext& node) {
  const Shape& ids = node.shape(0);
  if (ids.size() != 2) node.fail("input_ids", "[B, S]", to_string(ids));
  const auto rows = [&](std::size_t table, const Term& at) {
    return node.make("Gather", {node.in(table), at}, {{"axis", std::int64_t{0}}});
  };
  Term places;
  if (node.has(8)) {
    places = node.in(8);
  } else {
    std::vector<std::int64_t> values(static_cast<std::size_t>(ids[1]));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i);
    places = node.constant(HostTensor::from({1, ids[1]}, values));
  }
  Term sum = node.make("Add", {rows(2, node.in(0)), rows(3, places)});
  if (node.has(1) && node.has(4)) sum = node.make("Add", {sum, rows(4, node.in(1))});
  node.out(0, normalised(node, sum, 5, 6)[0]);
  node.out(2, sum);
  const bool has_mask = node.has(7);
  node.integer("mask_index_type", 0);
  if (!node.wants(1)) return;
  if (!has_mask) {
    node.out(1, node.filled(0, {DType::int32, {ids[0]}}));
    return;
  }
  const Term counts = node.make("ReduceSum", {node.cast(node.in(7), DType::int32)},
                                {{"axes", Ints{1}}, {"keepdims", std::int64_t{0}}});
  node.out(1, counts);
}

}  // namespace microsoft
}  // namespace tandem::importer::operators
