// Planning: buffers, instructions, waits, offsets, estimate.
#include "engine/plan/plan.h"

#include <algorithm>
#include <cassert>

#include "engine/plan/planning_steps.h"
#include "engine/plan/simulate.h"

namespace tandem {
namespace {

// With no accelerator, the host has read a step's outputs before it begins the next: one place is
// enough.
void set_slot_turns(int turns, Plan& plan) {
  const bool has_accelerator = std::any_of(plan.queues.begin(), plan.queues.end(),
                                           [](const Queue& queue) { return queue.device != 0; });
  if (!has_accelerator) return;
  for (Buffer& buffer : plan.buffers) {
    if (buffer.kind == BufferKind::input || buffer.kind == BufferKind::output) buffer.turns = turns;
  }
}

}  // namespace

Plan make_plan(const Lowered& lowered, const std::vector<std::size_t>& workspace_bytes,
               PlanOptions options) {
  assert(workspace_bytes.size() == lowered.graph.nodes.size());
  Plan plan;
  plan.range_of = std::move(options.ranges);
  plan.range_of.resize(lowered.graph.nodes.size(), 0);
  make_buffers(lowered, workspace_bytes, plan);
  if (options.double_inputs) double_inputs(lowered, plan);
  std::vector<PlannedItem> items = make_items(lowered, plan);
  set_slot_turns(options.slot_turns, plan);
  std::vector<ItemOrder> turns = copies_in_turn(items, lowered, plan);
  const std::vector<ItemOrder> reductions = reductions_in_turn(items, lowered, plan);
  turns.insert(turns.end(), reductions.begin(), reductions.end());
  set_clocks(items, plan, turns);
  place_buffers(items, lowered, plan);
  synchronise(items, plan, !turns.empty());
  order_launches(plan);
  std::vector<DeviceProfile> profiles;
  for (const Device* device : lowered.devices) profiles.push_back(assumed_profile(device->facts()));
  plan.estimated_seconds = simulate(plan, lowered, profiles).seconds;
  return plan;
}

}  // namespace tandem
