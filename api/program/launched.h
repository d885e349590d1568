// The rank as which a launcher of several processes has started this one.
#pragma once

namespace tandem::api {

struct Launched {
  int rank = 0, ranks = 1;
};
/// Reads the variables that launchers (mpirun, srun, `tandem launch`) set. Throws Error{usage}
/// where their values are impossible, and for launchers whose processes could not find each other.
Launched launched();

}  // namespace tandem::api
