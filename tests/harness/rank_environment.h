// The environment of ranks that tests start by mpirun.
#pragma once

#include <cstdlib>

namespace tandem::testing {

/// For processes that are started from here on: they may run as root and yield where there are more
/// of them than cores. Nothing looks for leaks, since MPI keeps memory of its own at its end, by
/// modules that it has unloaded, which no suppression can name.
inline void set_rank_environment() {
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
  setenv("LSAN_OPTIONS", "detect_leaks=0", 1);
}

}  // namespace tandem::testing
