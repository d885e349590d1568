// Finds and opens the plug-in libtandem_mpi.so: the program runs without it, and without MPI.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/mpi/mpi_functions.h"

namespace tandem {

struct MpiLibrary {
  const TandemMpi* functions = nullptr;
  std::string file;     // "" where none was opened
  std::string problem;  // why none was
  std::string fix;      // how to get what is missing
};

/// Where the plug-in may be, in order: what TANDEM_MPI names, next to the program or library that
/// this code is part of, in lib/ there, and in the private folder of an installation.
std::vector<std::string> mpi_plugin_files();
/// Opens the first of the files that exists; it has to be fit. It stays open until the process
/// ends.
MpiLibrary open_mpi_library(const std::vector<std::string>& files);
/// The MPI library of this process, opened by the first call.
const MpiLibrary& mpi_library();

}  // namespace tandem
