// What the devices hold at each moment of a planned step, on the clock of the timeline.
#pragma once

#include "api/commands/page/page_error.h"
#include "placement/report/planned_step.h"
#include "placement/resolve.h"

namespace tandem::api {

/// An entry for each device, by the last micro-batch. The clock begins with its first kernel, and a
/// step follows a step: what is in use over the edge is there at both ends. The highest point is
/// the peak of the device, to the byte.
PageJson memory_over_step(const PlannedStep& step, const ResolvedPolicy& resolved);

}  // namespace tandem::api
