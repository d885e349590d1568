// A planned step over time: what its queues do.
#pragma once

#include "api/commands/page/page_error.h"
#include "placement/report/planned_step.h"
#include "placement/resolve.h"

namespace tandem::api {

/// The queues of the last micro-batch with their kernels and copies, by the cost model.
PageJson timeline_of(const PlannedStep& step, const ResolvedPolicy& resolved);

}  // namespace tandem::api
