// A device for tests of lowering, plan and executor: host memory and any kernel list.
#pragma once

#include <memory>

#include "engine/device/device.h"

namespace tandem::testing {

/// A device named "cpu" with one thread and exactly these kernels.
std::unique_ptr<Device> make_test_device(KernelList kernels);

/// The reference kernels marked as fast ones, so that lowering makes Gemm, Fused and the other
/// operators that it makes only where a device has kernels of its own.
KernelList reference_kernels_as_fast();

/// As above, but convolutions and related operators request channels-last activations and weights.
KernelList channels_last_kernels();

}  // namespace tandem::testing
