// MatMul(Softmax(scale q kT + mask), v) becomes Attention, which keeps no S x T buffer.
#include <limits>

#include "engine/graph/rewrite.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace tandem {
namespace {

struct Found {
  ValueId q, k_transposed, v, mask;
  double scale = 1;
  bool causal = false;
};

/// A constant [.., S, T] of 0 where key <= query + T - S and of very negative numbers elsewhere.
bool is_causal_mask(const Match& match, ValueId mask) {
  if (!mask || !match.graph().is_constant(mask)) return false;
  const HostTensor& tensor = *match.graph().value(mask).constant;
  const Shape& shape = tensor.shape();
  if (shape.size() < 2 || !is_float(tensor.dtype())) return false;
  const std::int64_t rows = shape[shape.size() - 2], columns = shape[shape.size() - 1];
  if (rows * columns != tensor.type().elements() || rows < 2) return false;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const double m = tensor.number(i * columns + j);
      if (j <= i + columns - rows ? m != 0.0 : m > -1e30) return false;
    }
  }
  return true;
}

/// `Where(IsNaN(p), 0, p)` never reaches this form; Dropout of ratio 0 is an Identity, removed
/// before.
bool find(const Match& match, const Node& node, Found& found) {
  const Graph& graph = match.graph();
  if (node.op->name != "MatMul" || graph.type(node.outputs[0]).rank() != 4) return false;
  const Node* softmax = match.is(node.inputs[0], "Softmax");
  if (softmax == nullptr || softmax->attributes.integer("axis") != 3) return false;
  ValueId scores = softmax->inputs[0];
  if (const Node* add = match.is(scores, "Add")) {
    for (int i = 0; i < 2; ++i) {
      const Match::Product p = match.product(add->inputs[i], 2);
      if (p.rest.size() == 1 && match.is(p.rest[0], "MatMul") != nullptr) {
        scores = add->inputs[i];
        found.mask = add->inputs[1 - i];
        break;
      }
    }
    if (!found.mask) return false;
  }
  const Match::Product product = match.product(scores, 2);
  const Node* matmul = product.rest.size() == 1 ? match.is(product.rest[0], "MatMul") : nullptr;
  if (matmul == nullptr) return false;
  const Match::Product q = match.product(matmul->inputs[0], 2),
                       k = match.product(matmul->inputs[1], 2);
  if (q.rest.size() != 1 || k.rest.size() != 1) return false;
  found.q = q.rest[0];
  found.k_transposed = k.rest[0];
  found.v = node.inputs[1];
  found.scale = product.factor * q.factor * k.factor;
  const Shape &qs = graph.type(found.q).shape, &ks = graph.type(found.k_transposed).shape;
  const Shape& vs = graph.type(found.v).shape;
  if (qs.size() != 4 || ks.size() != 4 || vs.size() != 4) return false;
  if (qs[0] != ks[0] || qs[1] != ks[1] || vs[0] != qs[0] || vs[1] != qs[1]) return false;
  if (found.mask && !is_float(graph.type(found.mask).dtype)) return false;
  if (is_causal_mask(match, found.mask)) {
    found.causal = true;
    found.mask = {};
  }
  // A mask that depends on parameters would lose its gradient.
  return !found.mask || graph.is_constant(found.mask) ||
         graph.value(found.mask).kind == ValueKind::input;
}

}  // namespace

Graph recognise_attention(const Graph& graph, PassContext& context) {
  const Match match(graph);
  return rewrite(graph, context.operators, [&](GraphRewrite& to, NodeId id) {
    const Node& node = graph.node(id);
    Found found;
    if (!find(match, node, found)) return false;
    const std::vector<NodeId> others =
        match.interior(node.outputs[0], {found.q, found.k_transposed, found.v});
    if (!may_become_one(context, graph, id, others)) return false;
    to.scope_of(id, others);
    GraphBuilder& g = to.builder();
    const ValueId k = g.transpose_last_two(to.mapped(found.k_transposed));
    to.replace(
        node.outputs[0],
        g.add_node("Attention", {to.mapped(found.q), k, to.mapped(found.v), to.mapped(found.mask)},
                   {{"scale", found.scale}, {"causal", std::int64_t{found.causal}}}));
    context.notes.push_back(node.path + ": Attention" + (found.causal ? " (causal)" : ""));
    return true;
  });
}

}  // namespace tandem
