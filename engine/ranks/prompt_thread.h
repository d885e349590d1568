// Threads that work little and sleep much, among threads that compute.
#pragma once

namespace tandem {

/// The calling thread sleeps no longer than it wants (50 us more is the rule), and runs at once
/// when it wakes up, where the kernel knows short slices (Linux 6.12); elsewhere it may wait for
/// the end of a computing thread's slice, milliseconds. Needs no privilege; does nothing a second
/// time.
void wake_promptly();

}  // namespace tandem
