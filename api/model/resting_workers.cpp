// Leaves the cores of the host to other libraries between two steps.
#include "api/program/threads.h"
#include "kernels/cpu/threads/thread_team.h"
#include "kernels/cpu/threads/waiting.h"

namespace tandem::api {

void set_workers_resting(bool is_resting) {
  ThreadTeam::of_this_thread().spin_time().set_resting(is_resting);
}

}  // namespace tandem::api
