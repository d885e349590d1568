// The choice of a kernel and of the layouts of one node's operands, with the copies that this
// costs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/lower/layout_plan.h"

namespace tandem {

/// What is known of one node before its kernel is chosen.
struct NodeOperands {
  std::vector<Layout> inputs;              // actual layouts; arbitrary where absent
  std::vector<std::optional<Want>> wants;  // per output
  std::vector<int> overwritten;            // per output: input index or -1
  std::vector<bool> read;                  // per output
  /// Whether input i has been copied to that layout already, for another reader.
  std::function<bool(std::size_t i, const Layout& layout)> has_copy;
};

struct KernelSelection {
  const Kernel* kernel = nullptr;
  std::vector<std::optional<Layout>> input_copies;  // per input: the layout to copy to
  std::vector<Layout> outputs;
  std::vector<ValueId> storages;     // per output: whose buffer holds it (as in Want), or -1
  std::vector<std::string> refused;  // "kernel: reason" for each one before
};

/// The first kernel of the list that takes the operands as they are; else the first that can do the
/// node at all, with copies; reference kernels only where no other can. Throws Error where none
/// can.
KernelSelection select_kernel(const PlacedGraph& placed, NodeId node, const NodeOperands& operands,
                              const LowerContext& context);

}  // namespace tandem
