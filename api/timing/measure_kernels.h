// Kernels of a device, timed one by one for the cost model.
#pragma once

#include "engine/plan/simulate.h"
#include "engine/runtime/compile.h"

namespace tandem::api {

/// Runs each distinct kernel of one device by itself; adds the medians to `profile`, whose roofline
/// is scaled so that it predicts the same total time.
void measure_kernels(const CompiledProgram& program, int device, DeviceProfile& profile);

}  // namespace tandem::api
