// y = a b as numpy's matmul: batches broadcast; a 1-D operand is a row (a) or a column (b).
#include "engine/operators/matmul.h"

#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/operator.h"

namespace tandem {

ProductExtents product_extents(const NodeView& node, std::size_t i, std::size_t j) {
  Shape a = node.input(i).shape, b = node.input(j).shape;
  if (a.empty() || b.empty()) node.fail("a scalar operand", "rank >= 1", "rank 0");
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  ProductExtents extents;
  extents.m = a[a.size() - 2];
  extents.k = a.back();
  extents.n = b.back();
  if (b[b.size() - 2] != extents.k) {
    node.fail("the inner extents differ", to_string(node.input(i).shape),
              to_string(node.input(j).shape));
  }
  const auto batch = broadcast_shape(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  if (!batch) {
    node.fail("the leading axes do not broadcast", to_string(node.input(i).shape),
              to_string(node.input(j).shape));
  }
  extents.batch = *batch;
  return extents;
}

Shape product_shape(const NodeView& node, std::size_t i, std::size_t j) {
  const ProductExtents extents = product_extents(node, i, j);
  Shape shape = extents.batch;
  if (node.input(i).rank() > 1) shape.push_back(extents.m);
  if (node.input(j).rank() > 1) shape.push_back(extents.n);
  return shape;
}

Cost product_cost(const NodeView& node, std::size_t i, std::size_t j) {
  const ProductExtents e = product_extents(node, i, j);
  Cost cost;
  cost.flops = 2.0 * static_cast<double>(element_count(e.batch)) * static_cast<double>(e.m) *
               static_cast<double>(e.n) * static_cast<double>(e.k);
  for (std::size_t k = 0; k < node.input_count(); ++k) {
    if (node.has_input(k)) cost.bytes += static_cast<double>(node.input(k).bytes());
  }
  cost.bytes += static_cast<double>(node.output(0).bytes());
  return cost;
}

namespace operators {
namespace {

std::vector<TensorType> infer_matmul(const NodeView& node) {
  require_number(node, 0);
  require_same_dtype(node, 0, 1);
  return {{node.input(0).dtype, product_shape(node, 0, 1)}};
}

// b is one matrix for the whole batch: db = aᵀ dy over all rows at once, not batch by batch.
ValueId shared_matrix_gradient(GraphBuilder& g, ValueId a, ValueId dy) {
  const std::int64_t k = g.shape(a).back(), n = g.shape(dy).back();
  const Shape batch(g.shape(dy).begin(), g.shape(dy).end() - 1);
  const std::int64_t rows = element_count(batch);
  return g.matmul(g.transpose_last_two(g.reshape(a, {rows, k})), g.reshape(dy, {rows, n}));
}

// da = dy bᵀ, db = aᵀ dy, summed over broadcast batches
Gradients matmul_gradient(GradientContext& c) {
  GraphBuilder& g = c.g;
  const Shape a_shape = g.shape(c.x(0)), b_shape = g.shape(c.x(1));
  Shape a_matrix = a_shape, b_matrix = b_shape, y_matrix = g.shape(c.y(0));
  if (b_shape.size() == 1) {
    b_matrix.push_back(1);
    y_matrix.push_back(1);
  }
  if (a_shape.size() == 1) {
    a_matrix.insert(a_matrix.begin(), 1);
    y_matrix.insert(y_matrix.end() - 1, 1);
  }
  const ValueId a = g.reshape(c.x(0), a_matrix);
  const ValueId b = g.reshape(c.x(1), b_matrix);
  const ValueId dy = g.reshape(c.dy[0], y_matrix);

  Gradients dx(2);
  if (c.wanted[0]) {
    const ValueId da = g.sum_to(g.matmul(dy, g.transpose_last_two(b)), a_matrix);
    dx[0] = g.reshape(da, a_shape);
  }
  if (c.wanted[1]) {
    const ValueId db = b_matrix.size() == 2 && a_matrix.size() > 2
                           ? shared_matrix_gradient(g, a, dy)
                           : g.sum_to(g.matmul(g.transpose_last_two(a), dy), b_matrix);
    dx[1] = g.reshape(db, b_shape);
  }
  return dx;
}

Cost matmul_cost(const NodeView& node) { return product_cost(node, 0, 1); }

}  // namespace

Operator matmul() {
  return {.name = "MatMul",
          .role = Role::product,
          .inputs = {{"a"}, {"b"}},
          .outputs = {{"y"}},
          .infer = infer_matmul,
          .gradient = matmul_gradient,
          .cost = matmul_cost,
          .precision = Precision::low};
}

}  // namespace operators
}  // namespace tandem
