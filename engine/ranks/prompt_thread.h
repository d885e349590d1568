// Threads that work little and sleep much, among threads that compute.
#pragma once

namespace tandem {

/// Makes the calling thread sleep no longer than it asks for (the default is 50 us more) and run at
/// once when it wakes up, where the kernel has short slices (Linux 6.12); elsewhere it may wait for
/// the end of a computing thread's slice, milliseconds. Needs no privilege; a second call does
/// nothing.
void wake_promptly();

}  // namespace tandem
