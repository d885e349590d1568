// The report of `doctor` on MPI.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kernels/mpi/join_ranks.h"

namespace tandem::api {

std::string mpi_text(const MpiReport& mpi);
nlohmann::ordered_json mpi_json(const MpiReport& mpi);

}  // namespace tandem::api
