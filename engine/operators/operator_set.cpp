// The set of operators, and what all operators share.
#include <cassert>

#include "engine/graph/error.h"
#include "engine/operators/operator.h"

namespace tandem {

void NodeView::fail(std::string message, std::string expected, std::string got,
                    std::string fix) const {
  throw Error(ErrorKind::usage, Diagnostic{.message = node.op->name + ": " + std::move(message),
                                           .path = node.path,
                                           .expected = std::move(expected),
                                           .got = std::move(got),
                                           .fix = std::move(fix)});
}

bool has_outputs(const Operator& op, std::size_t count) {
  if (op.outputs.empty()) return count == 0;
  if (op.outputs.back().variadic) return true;
  std::size_t least = op.outputs.size();
  while (least > 0 && op.outputs[least - 1].optional) --least;
  return count >= least && count <= op.outputs.size();
}

void OperatorSet::add(Operator op) {
  assert(find(op.name) == nullptr && "two operators have this name");
  operators_.push_back(std::move(op));
}

const Operator* OperatorSet::find(std::string_view name) const {
  for (const Operator& op : operators_) {
    if (op.name == name) return &op;
  }
  return nullptr;
}

const Operator& OperatorSet::get(std::string_view name) const {
  const Operator* op = find(name);
  assert(op != nullptr && "no operator has this name");
  return *op;
}

Cost cost_of(const Graph& graph, const Node& node) {
  const NodeView view{graph, node};
  if (node.op->cost != nullptr) return node.op->cost(view);
  Cost cost;
  if (node.op->view != nullptr) return cost;  // costs something only where lowering has to copy
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (view.has_input(i)) cost.bytes += static_cast<double>(view.input(i).bytes());
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    cost.bytes += static_cast<double>(view.output(i).bytes());
    cost.flops += static_cast<double>(view.output(i).elements());
  }
  return cost;
}

}  // namespace tandem
