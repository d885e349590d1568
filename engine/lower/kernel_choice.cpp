#include "engine/lower/kernel_choice.h"

#include "engine/operators/operator.h"

namespace tandem {

KernelRequest make_request(const Graph& graph, NodeId id, const std::vector<Layout>& inputs,
                           const std::vector<Layout>& outputs, const std::vector<bool>& read,
                           const Device& device, bool deterministic) {
  const Node& node = graph.node(id);
  KernelRequest request;
  request.node = &node;
  request.node_index = id.index;
  request.facts = &device.facts();
  request.deterministic = deterministic;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    Operand operand;
    operand.present = static_cast<bool>(node.inputs[i]);
    if (operand.present) {
      const Value& value = graph.value(node.inputs[i]);
      operand.type = value.type;
      operand.layout = inputs[i];
      operand.layout.offset = 0;
      operand.constant = value.constant.get();
    }
    request.inputs.push_back(std::move(operand));
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    Operand operand;
    operand.present = read[i];
    operand.type = graph.type(node.outputs[i]);
    operand.layout = outputs[i];
    operand.layout.offset = 0;
    request.outputs.push_back(std::move(operand));
  }
  return request;
}

KernelRequest plain_request(const Graph& graph, NodeId id, const Device& device,
                            bool deterministic) {
  const Node& node = graph.node(id);
  std::vector<Layout> inputs, outputs;
  for (ValueId input : node.inputs) {
    inputs.push_back(input ? row_major(graph.type(input).shape) : Layout{});
  }
  for (ValueId output : node.outputs) outputs.push_back(row_major(graph.type(output).shape));
  return make_request(graph, id, inputs, outputs, std::vector<bool>(outputs.size(), true), device,
                      deterministic);
}

const Kernel* find_fast_kernel(const Graph& graph, NodeId id, const Device& device,
                               bool deterministic) {
  const Kernel* kernel =
      choose_kernel(device.kernels(), plain_request(graph, id, device, deterministic));
  return kernel != nullptr && !kernel->reference ? kernel : nullptr;
}

std::optional<FirstProposal> first_proposal(const KernelRequest& request, const Device& device) {
  const Kernel* kernel = choose_kernel(device.kernels(), request);
  if (kernel == nullptr) return std::nullopt;
  std::vector<Proposal> proposals = kernel->propose(request);
  if (proposals.empty()) return std::nullopt;
  return FirstProposal{kernel, std::move(proposals.front())};
}

LayoutConstraint constraint_of(const std::vector<LayoutConstraint>& constraints,
                               std::size_t operand) {
  if (operand < constraints.size()) return constraints[operand];
  return LayoutConstraint{LayoutConstraint::Kind::row_major, {}};
}

}  // namespace tandem
