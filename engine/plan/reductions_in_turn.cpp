// Orders sums over ranks whose operands are large and not needed afterwards: what makes the operand
// of a later sum waits for earlier ones, so that both operands may use the same bytes.
#include <algorithm>
#include <cstddef>

#include "engine/lower/bucket_size.h"
#include "engine/operators/collectives/collective.h"
#include "engine/plan/planning_steps.h"

namespace tandem {
namespace {

struct PromptReduction {
  int item = 0;
  int made = 0;                        // the first item that writes into a buffer of its operands
  std::size_t bytes = 0, largest = 0;  // all operands together, and the largest one
};

std::vector<PromptReduction> prompt_reductions(const std::vector<PlannedItem>& items,
                                               const Lowered& lowered, const Plan& plan) {
  std::vector<int> written(plan.buffers.size(), -1);
  std::vector<PromptReduction> found;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Instruction& instruction = items[i].instruction;
    for (const Access& access : instruction.accesses) {
      if (access.write && written[access.buffer] < 0) written[access.buffer] = static_cast<int>(i);
    }
    if (instruction.kind != Instruction::Kind::collective) continue;
    const Node& node = lowered.graph.node(instruction.node);
    if (collective_kind(node) != CollectiveKind::reduce_scatter ||
        node.attributes.integer("prompt") == 0)
      continue;
    PromptReduction one{static_cast<int>(i), static_cast<int>(i)};
    for (const ValueId input : node.inputs) {
      const int buffer = plan.buffer_of[input.index];
      if (buffer < 0 || !plan.buffers[buffer].in_arena()) continue;
      one.made = std::min(one.made, written[buffer]);
      one.bytes += plan.buffers[buffer].bytes;
      one.largest = std::max(one.largest, plan.buffers[buffer].bytes);
    }
    if (one.bytes > 0) found.push_back(one);
  }
  return found;
}

}  // namespace

std::vector<ItemOrder> reductions_in_turn(const std::vector<PlannedItem>& items,
                                          const Lowered& lowered, const Plan& plan) {
  const std::vector<PromptReduction> reductions = prompt_reductions(items, lowered, plan);
  std::size_t all = 0;
  for (const PromptReduction& one : reductions) all += one.bytes;
  const std::size_t most = bucket_bytes(all);
  // Its last operand makes a bucket a little larger than `most`. It still counts as `most`, or each
  // bucket would have to be summed before the next one is begun.
  const auto counted = [&](const PromptReduction& one) {
    return one.largest < most ? std::min(one.bytes, most) : one.bytes;
  };
  std::vector<ItemOrder> orders;
  std::size_t waiting = 0, oldest = 0;  // bytes that wait for their sums, and the first of those
  for (const PromptReduction& next : reductions) {
    for (; waiting > most; ++oldest) {
      const PromptReduction& done = reductions[oldest];
      if (done.item < next.made) orders.emplace_back(done.item, next.made);
      waiting -= counted(done);
    }
    waiting += counted(next);
  }
  return orders;
}

}  // namespace tandem
