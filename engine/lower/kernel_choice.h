// Asking a device's kernel list: what would it take, in which layouts, and why not.
#pragma once

#include <optional>
#include <vector>

#include "engine/device/device.h"
#include "engine/graph/graph.h"

namespace tandem {

/// The request for a node with these layouts (offsets are dropped: kernels get pointers that
/// include them). `read[i]`: whether output i is needed.
KernelRequest make_request(const Graph& graph, NodeId node, const std::vector<Layout>& inputs,
                           const std::vector<Layout>& outputs, const std::vector<bool>& read,
                           const Device& device, bool deterministic);

/// Like make_request, with row-major operands and all outputs read.
KernelRequest plain_request(const Graph& graph, NodeId node, const Device& device,
                            bool deterministic);

/// The first kernel of the list, other than a reference kernel, that does not refuse the node.
const Kernel* find_fast_kernel(const Graph& graph, NodeId node, const Device& device,
                               bool deterministic);

/// What the first kernel that does not refuse proposes first; nothing where no kernel takes it.
struct FirstProposal {
  const Kernel* kernel = nullptr;
  Proposal proposal;
};
std::optional<FirstProposal> first_proposal(const KernelRequest& request, const Device& device);

/// The constraint of that operand; row-major where the list has none for it.
LayoutConstraint constraint_of(const std::vector<LayoutConstraint>& constraints,
                               std::size_t operand);

}  // namespace tandem
