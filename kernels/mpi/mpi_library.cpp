#include "kernels/mpi/mpi_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "libtandem_mpi.so";
// Packages cannot be built again: theirs is in libtandem, and a wheel takes that of another build.
constexpr const char* fix_without_file =
    "the Debian package libtandem has it, and a build from source makes it if MPI is installed "
    "(Debian: apt-get install libopenmpi-dev openmpi-bin); TANDEM_MPI names it if it is elsewhere, "
    "also for a Python wheel, which has none";
constexpr const char* fix_unopened =
    "install the MPI that it was built with (Debian: apt-get install openmpi-bin)";
constexpr const char* fix_other_version =
    "take the plug-in that was built with this version of Tandem; TANDEM_MPI names it if it is "
    "elsewhere";

/// The folder of the program or library that has this function.
fs::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&open_mpi_library), &info) == 0 || info.dli_fname == nullptr)
    return {};
  std::error_code error;
  // Where the program was started by name, the loader knows only the name.
  fs::path file = fs::canonical("/proc/self/exe", error);
  if (std::string(info.dli_fname).find(".so") != std::string::npos)
    file = fs::canonical(info.dli_fname, error);
  return file.parent_path();
}

}  // namespace

std::vector<std::string> mpi_plugin_files() {
  if (const char* const named = std::getenv("TANDEM_MPI"); named != nullptr && *named != 0)
    return {named};
  const fs::path folder = own_folder();
  // In a build folder; then installed: of the program, of the library.
  return {folder / file_name, folder / "lib" / file_name,
          folder.parent_path() / TANDEM_PRIVATE_LIBDIR / file_name, folder / "tandem" / file_name};
}

MpiLibrary open_mpi_library(const std::vector<std::string>& files) {
  MpiLibrary library;
  for (const std::string& file : files) {
    std::error_code error;
    library.problem += (library.problem.empty() ? "there is no " : ", no ") + file;
    if (!fs::exists(file, error)) continue;
    // MPI opens parts of itself later, which find its symbols only where they are known to all.
    void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (handle == nullptr) {
      const char* const why = dlerror();
      library.problem = file + " cannot be opened: " + (why != nullptr ? why : "unknown error");
      library.fix = fix_unopened;
      return library;
    }
    const auto get = reinterpret_cast<decltype(&tandem_mpi)>(dlsym(handle, "tandem_mpi"));
    const TandemMpi* const functions = get != nullptr ? get() : nullptr;
    if (functions == nullptr || functions->table != tandem_mpi_table) {
      library.problem = file + " is of another version of this program";
      library.fix = fix_other_version;
      return library;
    }
    return {functions, file, "", ""};
  }
  library.fix = fix_without_file;
  return library;
}

const MpiLibrary& mpi_library() {
  static const MpiLibrary library = open_mpi_library(mpi_plugin_files());
  return library;
}

}  // namespace tandem
