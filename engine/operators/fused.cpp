// A body of scalar operators over one index space, with an optional last reduction; made by
// lowering.
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

// The node's inputs are the body's, in order; its outputs are the body's outputs.
std::vector<TensorType> infer_fused(const NodeView& node) {
  if (!node.node.body) node.fail("a fused node without a body");
  const Graph& body = *node.node.body;
  if (body.inputs.size() != node.input_count()) {
    node.fail("number of inputs", std::to_string(body.inputs.size()),
              std::to_string(node.input_count()));
  }
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    const TensorType& expected = body.type(body.inputs[i].value);
    if (!node.has_input(i) || !(node.input(i) == expected)) {
      node.fail("type of input " + std::to_string(i), to_string(expected),
                node.has_input(i) ? to_string(node.input(i)) : "nothing");
    }
  }
  std::vector<TensorType> types;
  for (const NamedValue& output : body.outputs) types.push_back(body.type(output.value));
  return types;
}

// Flops of the body; bytes of the operands, since what lies between stays in registers.
Cost fused_cost(const NodeView& node) {
  Cost total;
  for (const Node& inner : node.node.body->nodes)
    total.flops += cost_of(*node.node.body, inner).flops;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    total.bytes += static_cast<double>(node.input(i).bytes());
  }
  for (std::size_t i = 0; i < node.node.outputs.size(); ++i) {
    total.bytes += static_cast<double>(node.output(i).bytes());
  }
  return total;
}

}  // namespace

Operator fused() {
  return {.name = "Fused",
          .role = Role::fused,
          .inputs = {{"x", false, true}},
          .outputs = {{"y", false, true}},
          .infer = infer_fused,
          .not_differentiable = "made by lowering, after the gradient",
          .cost = fused_cost,
          .engine_only = true};
}

}  // namespace tandem::operators
