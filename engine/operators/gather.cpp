// y[a..., i..., b...] = x[a..., indices[i...], b...] along an axis; negative indices count from the
// end; 0 where the index is absent_id (rows.h), along any axis. `to`: the element type of y, x's
// where it is empty.
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/elementwise.h"
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

// The shape of y.
Shape gathered(const NodeView& node, const Shape& x, const TensorType& indices) {
  if (indices.dtype != DType::int32 && indices.dtype != DType::int64) {
    node.fail("element type of 'indices'", "int32 or int64", std::string(name_of(indices.dtype)));
  }
  const auto axis = static_cast<std::ptrdiff_t>(checked_axis(node, x.size()));
  if (x[axis] == 0 && indices.elements() > 0) node.fail("indices into an axis without elements");
  Shape shape(x.begin(), x.begin() + axis);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), x.begin() + axis + 1, x.end());
  return shape;
}

std::vector<TensorType> infer_gather(const NodeView& node) {
  return {{looked_up_type(node, "to"), gathered(node, node.input(0).shape, node.input(1))}};
}

Gradients gather_gradient(GradientContext& c) {
  Gradients dx(2);
  if (!c.wanted[0]) return dx;
  const Shape shape = c.g.shape(c.x(0));
  dx[0] = c.g.add_node("GatherGrad", {c.dy[0], c.x(1)},
                       {{"axis", c.node.attributes.integer("axis")}, {"shape", shape}});
  dx[0] = c.g.cast(dx[0], c.g.dtype(c.x(0)));
  return dx;
}

// What is looked up, not the whole of x.
Cost gather_cost(const NodeView& node) {
  const TensorType& y = node.output(0);
  const double elements = element_number(y);
  return {elements, elements * static_cast<double>(size_of(node.input(0).dtype)) +
                        static_cast<double>(y.bytes() + node.input(1).bytes())};
}

std::vector<TensorType> infer_gather_gradient(const NodeView& node) {
  require_number(node, 0);
  const Ints& shape = checked_shape(node, "shape");
  require_shape(node, 0, gathered(node, shape, node.input(1)));
  return {{node.input(0).dtype, shape}};
}

}  // namespace

Operator gather() {
  return {.name = "Gather",
          .role = Role::lookup,
          .inputs = {{"x"}, {"indices"}},
          .outputs = {{"y"}},
          .attributes = {{"axis", std::int64_t{0}}, {"to", std::string()}},
          .infer = infer_gather,
          .gradient = gather_gradient,
          .cost = gather_cost,
          .drops_elements = true,
          .takes_float8 = true};
}

// dx[a..., k, b...] = the sum of dy[a..., i..., b...] over all i with indices[i...] = k; an absent
// index equals no k
Operator gather_grad() {
  return {.name = "GatherGrad",
          .role = Role::lookup_gradient,
          .inputs = {{"dy"}, {"indices"}},
          .outputs = {{"dx"}},
          .attributes = {{"axis", std::int64_t{0}}, {"shape", Ints(), true}},
          .infer = infer_gather_gradient,
          .not_differentiable = no_second_gradient,
          .engine_only = true};
}

}  // namespace tandem::operators
