// Sums of looked-up rows: y[b..., :] = sum over l of weights[b..., l] * table[ids[b..., l], :],
// without the rows in between. Made by recognise_embedding_bag. `to`: the element type of y and of
// the weights, the table's where it is empty.
#include <algorithm>

#include "engine/graph/builder.h"
#include "engine/operators/elementwise.h"
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

// The shape of y, or of dy; weights are of its type.
Shape summed(const NodeView& view, const Shape& table, DType dtype, std::size_t ids_input,
             std::size_t weights_input) {
  require_index(view, ids_input);
  const TensorType& ids = view.input(ids_input);
  if (table.empty()) view.fail("a scalar has no rows", "a table", to_string(table));
  if (ids.rank() < 1 || ids.shape.back() < 1) {
    view.fail("shape of 'ids'", "[..., at least 1]", to_string(ids));
  }
  if (table[0] == 0 && ids.elements() > 0) view.fail("ids into a table without rows");
  if (view.has_input(weights_input)) {
    require_dtype(view, weights_input, dtype);
    require_shape(view, weights_input, ids.shape);
  }
  Shape shape(ids.shape.begin(), ids.shape.end() - 1);
  shape.insert(shape.end(), table.begin() + 1, table.end());
  return shape;
}

std::vector<TensorType> infer_embedding_bag(const NodeView& view) {
  require_float(view, 0);
  const TensorType& table = view.input(0);
  const DType dtype = looked_up_type(view, "to");
  return {{dtype, summed(view, table.shape, dtype, 1, 2)}};
}

// dtable[k] = the sum of weights[b, l] dy[b] over all (b, l) with ids[b, l] = k;
// dweights[b, l] = dy[b] . table[ids[b, l]]
Gradients gradient(GradientContext& c) {
  Gradients dx(c.node.inputs.size());
  const bool weighted = c.node.inputs.size() > 2 && c.x(2);
  if (c.wanted[0]) {
    std::vector<ValueId> inputs{c.dy[0], c.x(1)};
    if (weighted) inputs.push_back(c.x(2));
    const Shape shape = c.g.shape(c.x(0));
    dx[0] = c.g.add_node("EmbeddingBagGrad", std::move(inputs), {{"shape", shape}});
    dx[0] = c.g.cast(dx[0], c.g.dtype(c.x(0)));
  }
  if (weighted && c.wanted[2]) {
    const ValueId rows = c.g.add_node("Gather", {c.x(0), c.x(1)},
                                      {{"to", std::string(name_of(c.g.dtype(c.dy[0])))}});
    const Shape shape = c.g.shape(rows);
    const std::size_t ids_rank = c.g.shape(c.x(1)).size();
    Shape repeated = shape;
    repeated[ids_rank - 1] = 1;
    const ValueId product = c.g.mul(rows, c.g.reshape(c.dy[0], repeated));
    Ints axes;
    for (std::size_t axis = ids_rank; axis < shape.size(); ++axis) {
      axes.push_back(static_cast<std::int64_t>(axis));
    }
    dx[2] = axes.empty() ? product : c.g.reduce_sum(product, axes, false);
  }
  return dx;
}

// Rows that are looked up, not the whole table.
Cost embedding_bag_cost(const NodeView& view) {
  const double elements = element_number(view.input(1)) * element_number(view.input(0)) /
                          static_cast<double>(std::max<std::int64_t>(view.input(0).shape[0], 1));
  const bool weighted = view.has_input(2);
  double bytes = elements * static_cast<double>(size_of(view.input(0).dtype)) +
                 static_cast<double>(view.input(1).bytes() + view.output(0).bytes());
  if (weighted) bytes += static_cast<double>(view.input(2).bytes());
  return {weighted ? 2 * elements : elements, bytes};
}

std::vector<TensorType> infer_gradient(const NodeView& view) {
  require_float(view, 0);
  const Shape& shape = checked_shape(view, "shape");
  require_shape(view, 0, summed(view, shape, view.input(0).dtype, 1, 2));
  return {{view.input(0).dtype, shape}};
}

}  // namespace

// Negative ids count from the end, as in Gather. A row of weight 0 counts as zeros, whatever is in
// it: weights are how padding is masked. An absent id adds nothing, whatever its weight, whose
// gradient is 0; a mean, this sum divided by L, counts it.
Operator embedding_bag() {
  return {.name = "EmbeddingBag",
          .role = Role::embedding_bag,
          .inputs = {{"table"}, {"ids"}, {.name = "weights", .optional = true}},
          .outputs = {{"y"}},
          .attributes = {{"to", std::string()}},
          .infer = infer_embedding_bag,
          .gradient = gradient,
          .cost = embedding_bag_cost,
          .precision = Precision::float32,  // sums, as ReduceSum
          .engine_only = true};
}

// The dense form; where only lookups make a table's gradient, row_gradient reads dy, ids and
// weights instead, and this node is dead.
Operator embedding_bag_grad() {
  return {.name = "EmbeddingBagGrad",
          .role = Role::embedding_bag_gradient,
          .inputs = {{"dy"}, {"ids"}, {.name = "weights", .optional = true}},
          .outputs = {{"dtable"}},
          .attributes = {{"shape", Ints(), true}},
          .infer = infer_gradient,
          .not_differentiable = no_second_gradient,
          .precision = Precision::float32,
          .engine_only = true};
}

}  // namespace tandem::operators
