// How the host waits for an event of a GPU: awake for a short while, then asleep.
#pragma once

#include <chrono>

#include "kernels/cuda/device/device_shared.h"

namespace tandem::cuda {

/// Waking a thread that sleeps takes tens of microseconds. Where a wait is longer than this, the
/// step that is enqueued after the awaited one is as long, and hides them; the processor time that
/// is lost is the same few hundred microseconds a wait, however long the step.
constexpr std::chrono::microseconds longest_spin{200};

/// Returns once the event's last record was reached; `what` for errors. The GPU is chosen. Between
/// its questions the thread lets others run.
void wait_for(DeviceShared& device, cudaEvent_t event, const char* what);

}  // namespace tandem::cuda
