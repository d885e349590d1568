// MatMul with what follows it element by element becomes Gemm: bias, Relu, Gelu, and Relu's
// gradient after a data-gradient product. Only where the device has a kernel for the whole.
#include "engine/lower/placed_graph.h"
#include "engine/operators/activation.h"
#include "engine/operators/scalar_functions.h"

namespace tandem {
namespace {

// The 1-D operand of an Add that runs along the last axis of `x`, or -1.
ValueId bias_of(const Graph& graph, const Node& add, ValueId x) {
  if (add.op->scalar != ScalarFunction::add) return {};
  const ValueId other = add.inputs[0] == x ? add.inputs[1] : add.inputs[0];
  const Shape& shape = graph.type(x).shape;
  const Shape& bias = graph.type(other).shape;
  return bias.size() == 1 && bias[0] == shape.back() && other != x ? other : ValueId{};
}

Activation activation_of(const Node& node) {
  if (node.op->scalar == ScalarFunction::relu) return Activation::relu;
  if (node.op->scalar != ScalarFunction::gelu) return Activation::none;
  return node.attributes.text("approximate") == "tanh" ? Activation::gelu_tanh : Activation::gelu;
}

// Puts Gemm in the place of `last`; false (and nothing changed) where no kernel takes it.
bool put_gemm(PlacedEdit& edit, NodeId product, const std::vector<NodeId>& chain,
              std::vector<ValueId> inputs, Activation activation) {
  const NodeId last = chain.back();
  const NodeId gemm =
      edit.add("Gemm", std::move(inputs), {{"activation", name_of(activation)}}, last, chain);
  edit.graph().node(gemm).path = edit.graph().node(product).path;
  if (!edit.stays_if_fast(gemm)) return false;
  edit.replace(edit.graph().node(last).outputs[0], edit.graph().node(gemm).outputs[0]);
  return true;
}

void try_product(PlacedEdit& edit, NodeId id) {
  const Graph& graph = edit.graph();
  const ValueId a = graph.node(id).inputs[0], b = graph.node(id).inputs[1];
  const ValueId product = graph.node(id).outputs[0];
  if (graph.type(a).rank() < 2 || graph.type(b).rank() < 2) return;

  const NodeId next = edit.only_reader(product);
  if (!next || edit.device(next) != edit.device(id)) return;
  const Node reader = graph.node(next);
  if (reader.op->scalar == ScalarFunction::relu_grad && reader.inputs[0] == product &&
      reader.inputs[1] != product && graph.type(reader.inputs[1]) == graph.type(product)) {
    put_gemm(edit, id, {id, next}, {a, b, ValueId{}, reader.inputs[1]}, Activation::relu_grad);
    return;
  }

  std::vector<NodeId> chain{id};
  const ValueId bias = bias_of(graph, reader, product);
  NodeId activated = next;
  if (bias) {
    chain.push_back(next);
    activated = edit.only_reader(reader.outputs[0]);
    if (activated && edit.device(activated) != edit.device(id)) activated = {};
  }
  if (activated) {
    const Activation activation = activation_of(graph.node(activated));
    if (activation != Activation::none) {
      std::vector<NodeId> whole = chain;
      whole.push_back(activated);
      if (put_gemm(edit, id, whole, {a, b, bias, ValueId{}}, activation)) return;
    }
  }
  if (bias) put_gemm(edit, id, chain, {a, b, bias, ValueId{}}, Activation::none);
}

}  // namespace

PlacedGraph product_epilogues(PlacedGraph placed, const LowerContext& context) {
  PlacedEdit edit(std::move(placed), context);
  for (const NodeId id : edit.nodes()) {
    if (edit.graph().node(id).op->role == Role::product) try_product(edit, id);
  }
  return edit.finish();
}

}  // namespace tandem
