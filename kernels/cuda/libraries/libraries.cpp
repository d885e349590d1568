#include "kernels/cuda/libraries/libraries.h"

#include <cublas_api.h>
#include <cuda_runtime_api.h>

#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "kernels/cuda/libraries/cublas_lt.h"
#include "kernels/cuda/libraries/cudnn.h"
#include "kernels/cuda/libraries/file_version.h"
#include "kernels/cuda/libraries/nccl.h"
#include "kernels/cuda/libraries/nvrtc.h"
#include "kernels/cuda/libraries/real_libraries.h"

namespace tandem::cuda {
namespace {

struct Version {
  int major = 0, minor = 0, patch = -1;  // -1: it has none
};

std::string to_text(const Version& version) {
  std::string text = std::to_string(version.major) + "." + std::to_string(version.minor);
  if (version.patch >= 0) text += "." + std::to_string(version.patch);
  return text;
}

/// 91900 is 9.19.0.
Version split(std::size_t number) {
  const int n = static_cast<int>(number);
  return {n / 10000, n / 100 % 100, n % 100};
}

constexpr int cuda_major = CUDART_VERSION / 1000, cuda_minor = CUDART_VERSION % 1000 / 10;

template <class Function>
bool take(const SharedLibrary& library, const char* name, Function*& to) {
  to = reinterpret_cast<Function*>(library.function(name));
  return to != nullptr;
}

// Each gives the first function that the library lacks; null where it has all of them.
#define TANDEM_TAKE(name) \
  if (!take(library, #name, to.name)) return #name;
const char* take_functions(const SharedLibrary& library, CublasLt& to) {
  TANDEM_CUBLAS_LT_FUNCTIONS(TANDEM_TAKE)
  return nullptr;
}
const char* take_functions(const SharedLibrary& library, Cudnn& to) {
  TANDEM_CUDNN_FUNCTIONS(TANDEM_TAKE)
  return nullptr;
}
const char* take_functions(const SharedLibrary& library, Nvrtc& to) {
  TANDEM_NVRTC_FUNCTIONS(TANDEM_TAKE)
  return nullptr;
}
const char* take_functions(const SharedLibrary& library, Nccl& to) {
  TANDEM_NCCL_FUNCTIONS(TANDEM_TAKE)
  return nullptr;
}
#undef TANDEM_TAKE

Version version_of(const CublasLt& table) { return split(table.cublasLtGetVersion()); }
Version version_of(const Cudnn& table) { return split(table.cudnnGetVersion()); }
Version version_of(const Nvrtc& table) {
  Version version;
  table.nvrtcVersion(&version.major, &version.minor);
  return version;
}
Version version_of(const Nccl& table) {
  int number = 0;
  table.ncclGetVersion(&number);
  return split(static_cast<std::size_t>(number));
}

const std::string cudnn_series = ".so." + std::to_string(CUDNN_MAJOR);

/// What a library needs before its first call, and cannot say without ending the program. All
/// parts of cuDNN are of one folder, also where the loader would find others first.
template <class Table>
std::string open_parts(const Table&, const SharedLibrary& library) {
  if constexpr (std::is_same_v<Table, Cudnn>) {
    const std::string part = "libcudnn_";
    if (std::string problem = open_part(part + "graph" + cudnn_series, library); !problem.empty())
      return problem;
    const std::vector<std::string> needed{part + "ops" + cudnn_series, part + "cnn" + cudnn_series,
                                          part + "adv" + cudnn_series};
    return open_parts_beside(part, cudnn_series, needed, library);
  }
  return "";
}

std::string made_for(int cuda) {
  return "it is made for CUDA " + std::to_string(cuda) + ", this build for CUDA " +
         std::to_string(cuda_major);
}

/// What else can be wrong with a library of a version that fits.
template <class Table>
std::string further_problem(const Table& table, const SharedLibrary& library) {
  if constexpr (std::is_same_v<Table, Cudnn>) {
    const int built_for = static_cast<int>(table.cudnnGetCudartVersion() / 1000);
    if (built_for != cuda_major) return made_for(built_for);
  }
  if constexpr (std::is_same_v<Table, Nvrtc>) {  // looked for by name when it compiles
    return open_part("libnvrtc-builtins.so." + to_text(version_of(table)), library);
  }
  return "";
}

struct About {
  const char* name;
  const char* file;  // without the number of its series, which is needed.major
  Version needed;
  const char* package;  // name in the Python package index
};

template <class Table>
constexpr About about;
template <>
constexpr About about<CublasLt>{
    "cuBLASLt", "libcublasLt.so.", {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR}, "nvidia-cublas"};
template <>
constexpr About about<Cudnn>{
    "cuDNN", "libcudnn.so.", {CUDNN_MAJOR, CUDNN_MINOR}, "nvidia-cudnn-cu"};
template <>
constexpr About about<Nvrtc>{
    "NVRTC", "libnvrtc.so.", {cuda_major, cuda_minor}, "nvidia-cuda-nvrtc"};
template <>
constexpr About about<Nccl>{"NCCL", "libnccl.so.", {NCCL_MAJOR, NCCL_MINOR}, "nvidia-nccl-cu"};

std::string version_problem(const Version& found, const Version& needed) {
  if (found.major == needed.major && found.minor >= needed.minor) return "";
  const bool older = std::pair(found.major, found.minor) < std::pair(needed.major, needed.minor);
  return "version " + to_text(found) + (older ? " is older than " : " is of another series than ") +
         to_text(needed) + ", which this build was made with";
}

/// What the names of files tell, before anything is loaded.
template <class Table>
std::string unfit(const About& about, const std::string& path) {
  if (const std::optional<FileVersion> file = version_of_file(path)) {
    const Version found{file->numbers[0], file->numbers[1],
                        file->numbers.size() > 2 ? file->numbers[2] : -1};
    if (std::string problem = version_problem(found, about.needed); !problem.empty())
      return problem;
    if (file->cuda != 0 && file->cuda != cuda_major) return made_for(file->cuda);
  }
  if constexpr (std::is_same_v<Table, Cudnn>) {
    const std::string graph = "libcudnn_graph" + cudnn_series;
    if (file_beside(path, graph).empty()) return "its part " + graph + " is not in the same folder";
  }
  return "";
}

std::string fix_of(const About& about, const std::string& file, const SharedLibrary& library,
                   const LibraryPlaces& places) {
  std::string package = about.package;
  if (package.ends_with("-cu")) package += std::to_string(cuda_major);
  std::string fix = "pip install '" + package + ">=" + to_text(about.needed) + "'";
  const std::string& unfit = library.path.empty() ? library.refused : library.path;
  if (unfit.empty()) return fix + ", or name its folder in TANDEM_CUDA_LIBRARIES";
  const auto folder_of = [](const std::string& path) { return path.substr(0, path.rfind('/')); };
  if (const auto others = other_files(file, places, unfit); !others.empty()) {
    return "try the other one: TANDEM_CUDA_LIBRARIES=" + folder_of(others[0]) + "; or " + fix;
  }
  if (library.refused.empty()) return fix + ", and name its folder in TANDEM_CUDA_LIBRARIES";
  return "take " + folder_of(unfit) + " out of TANDEM_CUDA_LIBRARIES, or replace the file: " + fix;
}

/// A library that is opened once, at the first call of `open`.
template <class Table>
class Slot {
 public:
  const Table* open(const LibraryPlaces& places) {
    std::call_once(once_, [&] { open_now(places); });
    return table_ ? &*table_ : nullptr;
  }
  const FoundLibrary& report() const { return report_; }

 private:
  void open_now(const LibraryPlaces& places) {
    constexpr About about = cuda::about<Table>;
    const std::string file = about.file + std::to_string(about.needed.major);
    report_.name = about.name;
    report_.needed = to_text(about.needed);
    const SharedLibrary library = open_library(
        file, places, [&](const std::string& path) { return unfit<Table>(about, path); });
    report_.path = library.path;
    if (library.handle != nullptr) report_.passed_over = library.passed_over;
    report_.problem = library.problem;
    Table table;
    if (library.handle != nullptr) report_.problem = check(about, library, table);
    if (report_.problem.empty()) {
      table_ = table;
    } else {
      report_.fix = fix_of(about, file, library, places);
    }
  }

  /// Fills the table; what is wrong with the library.
  std::string check(const About& about, const SharedLibrary& library, Table& table) {
    if (const char* missing = take_functions(library, table))
      return std::string("it has no function ") + missing;
    if (std::string problem = open_parts(table, library); !problem.empty()) return problem;
    const Version found = version_of(table);
    report_.version = to_text(found);
    std::string problem = version_problem(found, about.needed);
    return problem.empty() ? further_problem(table, library) : problem;
  }

  std::once_flag once_;
  std::optional<Table> table_;
  FoundLibrary report_;
};

class RealLibraries final : public Libraries {
 public:
  explicit RealLibraries(LibraryPlaces places) : places_(std::move(places)) {}

  const CublasLt* cublas_lt() override { return cublas_lt_.open(places_); }
  const Nvrtc* nvrtc() override { return nvrtc_.open(places_); }
  const Nccl* nccl() override { return nccl_.open(places_); }
  const Cudnn* cudnn() override {  // cuDNN uses the copies of the others that are open already
    cublas_lt();
    nvrtc();
    return cudnn_.open(places_);
  }
  std::vector<FoundLibrary> report() override {
    cudnn();
    nccl();
    return {cublas_lt_.report(), cudnn_.report(), nvrtc_.report(), nccl_.report()};
  }

 private:
  const LibraryPlaces places_;
  Slot<CublasLt> cublas_lt_;
  Slot<Cudnn> cudnn_;
  Slot<Nvrtc> nvrtc_;
  Slot<Nccl> nccl_;
};

}  // namespace

std::shared_ptr<Libraries> make_libraries(LibraryPlaces places) {
  return std::make_shared<RealLibraries>(std::move(places));
}

std::shared_ptr<Libraries> make_real_libraries() { return make_libraries(library_places()); }

}  // namespace tandem::cuda
