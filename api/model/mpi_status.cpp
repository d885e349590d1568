#include "api/model/mpi_status.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tandem::api {

std::string mpi_text(const MpiReport& mpi) {
  std::string text =
      mpi.usable ? fmt::format("mpi       {}\n          plug-in  {}\n", mpi.version, mpi.file)
                 : fmt::format("mpi       no runs of several processes: {}\n          fix: {}\n",
                               mpi.problem, mpi.fix);
  text += mpi.launcher.empty()
              ? "          no mpirun in PATH; fix: apt-get install openmpi-bin, or Slurm's srun\n"
              : fmt::format("          mpirun   {}\n", mpi.launcher);
  return text;
}

nlohmann::ordered_json mpi_json(const MpiReport& mpi) {
  return {{"version", mpi.version},
          {"plug_in", mpi.file},
          {"mpirun", mpi.launcher},
          {"problem", mpi.problem},
          {"fix", mpi.fix}};
}

}  // namespace tandem::api
