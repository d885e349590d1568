// Threads that compute, for programs that compute with other libraries in between.
#pragma once

namespace tandem::api {

/// Whether the calling thread leaves its workers' cores to others until its next step: they then
/// wait for that step for tens of microseconds before they sleep, and else for a millisecond.
void set_workers_resting(bool is_resting);

}  // namespace tandem::api
