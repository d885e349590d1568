// Finds and opens shared libraries that are not linked: which folders are searched, which file it
// was, why others were not.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tandem::cuda {

/// Where libraries are looked for: `first`, then what the loader finds by name (LD_LIBRARY_PATH,
/// the system's cache and folders), then `others`.
struct LibraryPlaces {
  std::vector<std::string> first;
  bool by_name = true;
  std::vector<std::string> others;
};

/// A variable of the environment; "" where it is not set.
using Environment = std::function<std::string(const char* variable)>;

/// The search order of docs/cuda.md. Folders of TANDEM_CUDA_LIBRARIES are in `first` whether or not
/// they exist; `others` exist, each once. `root` ("": /) has `usr/local/cuda*`.
LibraryPlaces library_places(const Environment& environment, const std::string& root = "");
/// The places for this process's environment.
LibraryPlaces library_places();

/// A library that stays open until the program ends: closing one that has started threads or
/// registered handlers ends badly.
struct SharedLibrary {
  void* handle = nullptr;
  std::string path;     // path of the file; "" where none was opened
  std::string problem;  // why none was: where it was looked for, and what is wrong with files there
  std::string refused;  // the file in a folder of `first` that cannot be used; "" where none is
  std::vector<std::string> passed_over;  // files before it, each with the reason

  /// Null where the library has no such function.
  void* function(const char* name) const;
};

/// What is wrong with the file at a path, without opening it; "" where nothing is known.
using Unfit = std::function<std::string(const std::string& path)>;

/// Opens the first file of this name ("libcudnn.so.9") that is fit and can be opened; one that is
/// in a folder of `first` must be. Its functions are not added to the program's own.
SharedLibrary open_library(const std::string& file, const LibraryPlaces& places,
                           const Unfit& unfit = {});
/// The file of this name next to the one at `path`, or next to what that links to; "" where there
/// is none.
std::string file_beside(const std::string& path, const std::string& file);
/// Opens a file that `library` will ask for by name: the one next to it, else as the loader finds
/// it. "" where it is open afterwards, else the reason.
std::string open_part(const std::string& file, const SharedLibrary& library);
/// Opens those files next to the library whose names begin and end so and of which the loader would
/// find others: what is open is found before them. `first`: parts that others need, in order. "" or
/// the reason.
std::string open_parts_beside(const std::string& begin, const std::string& end,
                              const std::vector<std::string>& first, const SharedLibrary& library);
/// Whole files of this name in `places` other than the one at `path`, in the search order.
std::vector<std::string> other_files(const std::string& file, const LibraryPlaces& places,
                                     const std::string& path);
/// The folders in `first` that do not exist or are no folders.
std::vector<std::string> missing_folders(const LibraryPlaces& places);

}  // namespace tandem::cuda
