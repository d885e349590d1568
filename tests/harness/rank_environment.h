// The environment of ranks that tests start with mpirun.
#pragma once

#include <cstdlib>

namespace tandem::testing {

/// Sets it for processes that are started later: they may run as root, and they yield where there
/// are more ranks than cores. Leak detection is off, since MPI keeps memory until its end,
/// allocated by modules that it has unloaded, which no suppression can name.
inline void set_rank_environment() {
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
  setenv("LSAN_OPTIONS", "detect_leaks=0", 1);
}

}  // namespace tandem::testing
