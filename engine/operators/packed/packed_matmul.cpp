// y = x W, with `transposed` x Wᵀ, where W is a packed matrix (packing.h) that is never unpacked as
// a whole.
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/packed/packing.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_packed_matmul(const NodeView& node) {
  require_float(node, 0);
  require_rank(node, 1, 2);
  const Packing packing = checked_packing(node, 1);
  const bool transposed = node.attributes().flag("transposed");
  const std::int64_t inner = transposed ? packing.columns : packing.rows;
  Shape shape = node.input(0).shape;
  if (shape.empty()) node.fail("a scalar operand", "rank >= 1", "rank 0");
  if (shape.back() != inner) {
    node.fail("the inner extents differ", std::to_string(inner), std::to_string(shape.back()));
  }
  shape.back() = transposed ? packing.rows : packing.columns;
  return {{node.input(0).dtype, std::move(shape)}};
}

// dx = dy Wᵀ
Gradients packed_matmul_gradient(GradientContext& c) {
  Gradients dx(c.node.inputs.size());
  if (!c.wanted[0]) return dx;
  Attributes attributes = c.node.attributes;
  attributes.set("transposed", std::int64_t{attributes.flag("transposed") ? 0 : 1});
  std::vector<ValueId> inputs = c.node.inputs;
  inputs[0] = c.dy[0];
  dx[0] = c.g.add_node("PackedMatMul", std::move(inputs), std::move(attributes));
  return dx;
}

Cost packed_matmul_cost(const NodeView& node) {
  const Packing packing = packing_of(node.attributes(), node.input(1));
  const std::int64_t inner = node.attributes().flag("transposed") ? packing.columns : packing.rows;
  Cost cost;
  cost.flops = 2.0 * static_cast<double>(node.output(0).elements()) * static_cast<double>(inner);
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    if (node.has_input(i)) cost.bytes += static_cast<double>(node.input(i).bytes());
  }
  cost.bytes += static_cast<double>(node.output(0).bytes());
  return cost;
}

std::vector<AttributeSpec> packed_matmul_attributes() {
  std::vector<AttributeSpec> attributes = packing_attributes();
  attributes.push_back({"transposed", std::int64_t{0}});
  return attributes;
}

}  // namespace

Operator packed_matmul() {
  return {.name = "PackedMatMul",
          .inputs = {{"x"},
                     {"data"},
                     {"scales", true, false, true},
                     {"zero_points", true, false, true}},
          .outputs = {{"y"}},
          .attributes = packed_matmul_attributes(),
          .infer = infer_packed_matmul,
          .gradient = packed_matmul_gradient,
          .cost = packed_matmul_cost,
          .precision = Precision::float32,
          .engine_only = true};
}

}  // namespace tandem::operators
