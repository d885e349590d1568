// One layout for all tensors of an update.
#include "engine/device/update_proposal.h"

#include "engine/operators/grouped_update.h"

namespace tandem {

std::int64_t update_count(const KernelRequest& r) {
  return r.node->op->role == Role::grouped_update ? r.attributes().integer("count") : 1;
}

std::vector<Proposal> propose_update(const KernelRequest& r) {
  const std::int64_t count = update_count(r);
  const UpdateGroup sizes = update_group(*r.node);
  const LayoutConstraint row_major{LayoutConstraint::Kind::row_major, {}};
  const LayoutConstraint dense{LayoutConstraint::Kind::dense, {}};
  Proposal proposal;
  proposal.inputs.resize(r.inputs.size(), row_major);
  proposal.outputs.resize(r.outputs.size(), row_major);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const std::size_t first = i * sizes.inputs;
    const Operand& master = r.inputs[first];
    LayoutConstraint constraint = row_major;
    if (satisfies(dense, master.layout, master.type.shape)) {
      constraint = {LayoutConstraint::Kind::exact, master.layout};
    }
    for (std::size_t k = 0; k < sizes.tensors; ++k) proposal.inputs[first + k] = constraint;
    const bool grouped = r.node->op->role == Role::grouped_update;
    const std::size_t weight = grouped ? first + sizes.tensors : old_weight(*r.node);
    if (sizes.weight && weight < proposal.inputs.size()) proposal.inputs[weight] = constraint;
    for (std::size_t k = 0; k < sizes.outputs; ++k) {
      const std::size_t at = i * sizes.outputs + k;
      if (r.outputs[at].type.shape == master.type.shape) proposal.outputs[at] = constraint;
    }
  }
  return {proposal};
}

}  // namespace tandem
