// MatMul(Softmax(scale q kT + mask), v) becomes Attention, which keeps no S x T buffer.
#include <algorithm>
#include <cmath>
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
  bool zeroed = false;  // rows that see no key are 0
};

/// Whether adding m to any score of ordinary size makes its key's weight 0, next to a visible key.
/// No finite float16 does: scores may be as large.
bool hides(double m, DType dtype) {
  const bool wide = dtype == DType::float32 || dtype == DType::bfloat16;
  return m == -std::numeric_limits<double>::infinity() || (wide && m <= -1e38);
}

/// Whether a mask [.., S, T] is 0 where key <= query + T - S, and hides the key elsewhere. With
/// fewer keys than queries the first rows would see none.
bool is_causal_mask(const HostTensor& mask, std::int64_t rows, std::int64_t columns) {
  const Shape& shape = mask.shape();
  const std::size_t rank = shape.size();
  if (rank < 2 || shape[rank - 2] != rows || shape[rank - 1] != columns) return false;
  if (rows * columns != mask.type().elements() || rows < 2 || rows > columns) return false;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const double m = mask.number(i * columns + j);
      if (j <= i + columns - rows ? m != 0.0 : !hides(m, mask.dtype())) return false;
    }
  }
  return true;
}

/// Whether each row leaves a key at an ordinary number. A row of -infinity is NaN after a Softmax
/// and 0 after Attention; one of very negative numbers is uniform after both, but there log_sum_exp
/// rounds the logarithm of the sum away, so that gradients have to compute it again, which those of
/// libraries do not. Rows of -infinity pass where the chain makes them 0, too.
bool shows_in_every_row(const HostTensor& mask, bool zeroed) {
  const std::int64_t columns = mask.shape().empty() ? 1 : mask.shape().back();
  const std::int64_t count = mask.type().elements();
  if (count == 0) return false;
  for (std::int64_t start = 0; start < count; start += columns) {
    double largest = -std::numeric_limits<double>::infinity();
    for (std::int64_t j = start; j < start + columns; ++j) {
      const double m = mask.number(j);
      if (std::isnan(m)) return false;
      largest = std::max(largest, m);
    }
    const bool is_empty = largest == -std::numeric_limits<double>::infinity();
    if (std::abs(largest) > 1024 && !(zeroed && is_empty)) return false;
  }
  return true;
}

/// p where `value` is Where(IsNaN(p), 0, p), which exporters write for PyTorch's attention: 0 for a
/// query that sees no key, as Attention has it. Else `value`.
ValueId without_nan(const Match& match, ValueId value, bool& zeroed) {
  const Node* where = match.is(value, "Where");
  if (where == nullptr || !match.is_number(where->inputs[1], 0.0)) return value;
  const Node* is_nan = match.is(where->inputs[0], "IsNaN");
  if (is_nan == nullptr || is_nan->inputs[0] != where->inputs[2]) return value;
  if (match.graph().type(where->inputs[2]) != match.graph().type(value)) return value;
  zeroed = true;
  return where->inputs[2];
}

/// Whether `mask` chooses between two finite constants, as masks made of bools do: no row of it is
/// -infinity.
bool is_finite_choice(const Match& match, ValueId mask) {
  for (const std::string_view view : {"Expand", "Reshape", "Expand"}) {
    if (const Node* node = match.is(mask, view)) mask = node->inputs[0];
  }
  const Node* where = match.is(mask, "Where");
  if (where == nullptr) return false;
  const auto is_finite = [&](ValueId value) {
    const auto number = match.number(value);
    return number && std::isfinite(*number);
  };
  return is_finite(where->inputs[1]) && is_finite(where->inputs[2]);
}

/// Finds attention that ends in `node`. Dropout of ratio 0 is an Identity, which is removed before.
bool find(const Match& match, const Node& node, Found& found) {
  const Graph& graph = match.graph();
  if (node.op->role != Role::product || graph.type(node.outputs[0]).rank() != 4) return false;
  const ValueId weights = without_nan(match, node.inputs[0], found.zeroed);
  const Node* softmax = match.is(weights, "Softmax");
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
  if (std::abs(found.scale) > 1e9) return false;
  // No factor and no mask may widen what it is combined with.
  if (graph.type(softmax->inputs[0]) != graph.type(matmul->outputs[0])) return false;
  if (graph.type(matmul->inputs[0]) != graph.type(found.q)) return false;
  if (graph.type(matmul->inputs[1]) != graph.type(found.k_transposed)) return false;
  const Shape &qs = graph.type(found.q).shape, &ks = graph.type(found.k_transposed).shape;
  const Shape& vs = graph.type(found.v).shape;
  if (qs.size() != 4 || ks.size() != 4 || vs.size() != 4) return false;
  if (qs[0] != ks[0] || qs[1] != ks[1] || vs[0] != qs[0] || vs[1] != qs[1]) return false;
  if (element_count(qs) == 0 || element_count(ks) == 0 || element_count(vs) == 0) return false;
  if (!found.mask) return true;
  // For a mask that is fed or computed, it is unknown whether each row shows a key, which matters
  // unless empty rows are 0 anyway; one that depends on parameters would lose its gradient as well.
  if (!graph.is_constant(found.mask)) {
    return (found.zeroed || is_finite_choice(match, found.mask)) && !reads_state(graph, found.mask);
  }
  const HostTensor& mask = *graph.value(found.mask).constant;
  if (is_causal_mask(mask, qs[2], ks[3])) {
    found.causal = true;
    found.mask = {};
    return true;
  }
  return shows_in_every_row(mask, found.zeroed);
}

}  // namespace

Graph recognise_attention(const Graph& graph, PassContext& context) {
  const Match match(graph);
  return rewrite(graph, context.operators, [&](GraphRewrite& to, NodeId id) {
    const Node& node = graph.node(id);
    Found found;
    if (!find(match, node, found)) return false;
    const std::vector<NodeId> others =
        match.interior(node.outputs[0], {found.q, found.k_transposed, found.v, found.mask});
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
