// Planning: buffers, instructions, waits, offsets, estimate.
#include "engine/plan/plan.h"

#include <cassert>

#include "engine/plan/plan_parts.h"
#include "engine/plan/simulate.h"

namespace tandem {

Plan make_plan(const Lowered& lowered, const std::vector<std::size_t>& workspace_bytes) {
  assert(workspace_bytes.size() == lowered.graph.nodes.size());
  Plan plan;
  make_buffers(lowered, workspace_bytes, plan);
  std::vector<PlannedItem> items = make_items(lowered, plan);
  synchronise(items, plan);
  order_launches(plan);
  place_buffers(items, lowered, plan);
  std::vector<DeviceProfile> profiles;
  for (const Device* device : lowered.devices) profiles.push_back(assumed_profile(device->facts()));
  plan.estimated_seconds = simulate(plan, lowered, profiles).seconds;
  return plan;
}

}  // namespace tandem
