// Kernels of a device, timed one by one for the cost model.
#pragma once

#include "engine/plan/simulate.h"
#include "engine/runtime/compile.h"

namespace tandem::api {

/// Runs each distinct kernel of one device alone; `profile` gains the medians, and its roofline is
/// scaled so that it takes as long as they do in all.
void measure_kernels(const CompiledProgram& program, int device, DeviceProfile& profile);

}  // namespace tandem::api
