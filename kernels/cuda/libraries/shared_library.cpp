#include "kernels/cuda/libraries/shared_library.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>

#include "kernels/cuda/libraries/library_file.h"

namespace tandem::cuda {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> split_at_colons(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(':', start), text.size());
    if (end > start) parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

/// Folders in `folder` whose names begin with `prefix`, the greatest name first: "cuda-13.0" before
/// "cuda-12.8".
std::vector<fs::path> folders_named(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    if (entry->path().filename().string().starts_with(prefix)) found.push_back(entry->path());
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

/// The folders above bin/ of the Pythons that this process would start, and of the one it links to.
std::vector<fs::path> python_roots(const Environment& environment) {
  std::vector<fs::path> roots;
  if (const std::string active = environment("VIRTUAL_ENV"); !active.empty())
    roots.push_back(active);
  for (const std::string& folder : split_at_colons(environment("PATH"))) {
    const fs::path python = fs::path(folder) / "python3";
    if (access(python.c_str(), X_OK) != 0) continue;
    std::error_code ignored;
    roots.push_back(fs::path(folder).parent_path());
    roots.push_back(fs::canonical(python, ignored).parent_path().parent_path());
    break;
  }
  return roots;
}

/// Where Pythons keep installed packages: Debian's have a second place for what pip installs.
std::vector<fs::path> package_folders(const fs::path& python_root) {
  std::vector<fs::path> folders;
  for (const fs::path& version : folders_named(python_root / "lib", "python3."))
    folders.push_back(version / "site-packages");
  for (const fs::path& version : folders_named(python_root / "local" / "lib", "python3."))
    folders.push_back(version / "dist-packages");
  folders.push_back(python_root / "lib" / "python3" / "dist-packages");
  return folders;
}

/// Folders that exist, each once however it is spelt.
class Folders {
 public:
  void add(const fs::path& folder) {
    std::error_code error;
    const fs::path real = fs::canonical(folder, error);
    if (error || !fs::is_directory(real, error) || !known_.insert(real).second) return;
    list_.push_back(folder.string());
  }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::set<fs::path> known_;
  std::vector<std::string> list_;
};

/// The absolute path of what has this name in a folder, be it a link to nothing; "" where nothing
/// has.
std::string file_in(const std::string& folder, const std::string& file) {
  std::error_code error;
  const fs::path path = fs::absolute(fs::path(folder) / file, error);
  if (error) return "";
  const fs::file_type type = fs::symlink_status(path, error).type();
  return type == fs::file_type::not_found || type == fs::file_type::none ? "" : path.string();
}

std::string last_error() {
  const char* text = dlerror();
  return text != nullptr ? text : "unknown error";
}

/// A path, or a name that the loader looks for.
struct Opened {
  void* handle = nullptr;
  std::string error;  // "" where there is a handle
};

Opened open_file(const std::string& name) {
  const bool is_path = name.find('/') != std::string::npos;
  if (const std::string path = is_path ? name : loader_file(name); !path.empty()) {
    if (const std::string problem = file_problem(path); !problem.empty())
      return {nullptr, path + ": " + problem};
  }
  Opened opened;
  opened.handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (opened.handle == nullptr) opened.error = last_error();
  return opened;
}

std::string path_of(void* handle) {
  link_map* map = nullptr;
  return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr ? map->l_name : "";
}

}  // namespace

LibraryPlaces library_places(const Environment& environment, const std::string& root) {
  LibraryPlaces places;
  places.first = split_at_colons(environment("TANDEM_CUDA_LIBRARIES"));
  Folders folders;
  if (const fs::path home = environment("CUDA_HOME"); !home.empty()) {
    folders.add(home / "lib");
    folders.add(home / "lib64");
  }
  std::vector<fs::path> toolkits = folders_named(root + "/usr/local", "cuda-");
  // The toolkit that the owner has chosen.
  toolkits.insert(toolkits.begin(), root + "/usr/local/cuda");
  for (const fs::path& toolkit : toolkits) {
    folders.add(toolkit / "lib64");
    folders.add(toolkit / "targets" / "x86_64-linux" / "lib");
  }
  const std::string toolkit_wheels = "cu" + std::to_string(CUDART_VERSION / 1000);
  for (const fs::path& python : python_roots(environment)) {
    for (const fs::path& packages : package_folders(python)) {
      for (const char* wheel : {"cudnn", toolkit_wheels.c_str(), "nccl"})
        folders.add(packages / "nvidia" / wheel / "lib");
    }
  }
  places.others = folders.take();
  return places;
}

LibraryPlaces library_places() {
  return library_places([](const char* variable) {
    const char* value = std::getenv(variable);
    return std::string(value != nullptr ? value : "");
  });
}

void* SharedLibrary::function(const char* name) const {
  return handle != nullptr ? dlsym(handle, name) : nullptr;
}

SharedLibrary open_library(const std::string& file, const LibraryPlaces& places,
                           const Unfit& unfit) {
  SharedLibrary library;
  std::string absent;  // places that have no such file
  const auto none_in = [&](const std::string& place) {
    absent += (absent.empty() ? "" : ", ") + place;
  };
  std::string error;  // why the last try failed
  const auto open = [&](const std::string& name, const std::string& path) {
    if (!path.empty() && unfit && file_problem(path).empty()) {
      if (const std::string why = unfit(path); !why.empty()) {
        error = path + ": " + why;
        return false;
      }
    }
    const Opened opened = open_file(name);
    library.handle = opened.handle;
    error = opened.error;
    if (library.handle == nullptr) return false;
    library.path = path_of(library.handle);
    return true;
  };
  for (const std::string& folder : places.first) {
    const std::string path = file_in(folder, file);
    if (!path.empty()) {
      if (!open(path, path)) {
        library.problem = error;
        library.refused = path;
      }
      return library;
    }
    none_in(folder);
  }
  if (places.by_name) {
    if (open(file, loader_file(file))) return library;
    if (error.starts_with(file + ": cannot open shared object file")) {
      none_in("the loader's folders");
    } else {
      library.passed_over.push_back(error);
    }
  }
  for (const std::string& folder : places.others) {
    const std::string path = file_in(folder, file);
    if (path.empty()) {
      none_in(folder);
    } else if (open(path, path)) {
      return library;
    } else {
      library.passed_over.push_back(error);
    }
  }
  for (const std::string& why : library.passed_over) library.problem += why + "; ";
  library.problem += file + " is not in " + (absent.empty() ? "any other folder" : absent);
  return library;
}

std::string file_beside(const std::string& path, const std::string& file) {
  const std::string beside = file_in(fs::path(path).parent_path().string(), file);
  if (!beside.empty()) return beside;
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error ? "" : file_in(real.parent_path().string(), file);
}

std::string open_part(const std::string& file, const SharedLibrary& library) {
  const std::string beside = file_beside(library.path, file);
  const Opened opened = open_file(beside.empty() ? file : beside);
  if (opened.handle != nullptr) return "";
  return "its part " + file + " cannot be opened: " + opened.error;
}

std::string open_parts_beside(const std::string& begin, const std::string& end,
                              const std::vector<std::string>& first, const SharedLibrary& library) {
  std::vector<std::string> files = first;
  std::error_code error;
  const fs::path folder = fs::canonical(library.path, error).parent_path();
  for (fs::directory_iterator entry(folder, error), none; !error && entry != none;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool is_part = name.starts_with(begin) && name.ends_with(end);
    if (is_part && std::find(files.begin(), files.end(), name) == files.end())
      files.push_back(name);
  }
  for (const std::string& name : files) {
    const std::string own = file_beside(library.path, name), found = loader_file(name);
    if (own.empty() || found.empty() || fs::equivalent(own, found, error)) continue;
    if (std::string problem = open_part(name, library); !problem.empty()) return problem;
  }
  return "";
}

std::vector<std::string> other_files(const std::string& file, const LibraryPlaces& places,
                                     const std::string& path) {
  std::vector<std::string> found;
  std::error_code error;
  std::set<fs::path> known{fs::canonical(path, error)};
  const auto add = [&](const std::string& other) {
    if (other.empty() || !file_problem(other).empty()) return;
    if (known.insert(fs::canonical(other, error)).second) found.push_back(other);
  };
  for (const std::string& folder : places.first) add(file_in(folder, file));
  if (places.by_name) add(loader_file(file));
  for (const std::string& folder : places.others) add(file_in(folder, file));
  return found;
}

std::vector<std::string> missing_folders(const LibraryPlaces& places) {
  std::vector<std::string> missing;
  for (const std::string& folder : places.first) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) missing.push_back(folder);
  }
  return missing;
}

}  // namespace tandem::cuda
