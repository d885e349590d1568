#include "kernels/cuda/libraries/library_file.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <vector>

namespace tandem::cuda {
namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);

constexpr const char* no_library = "it is no shared library";

bool ends_within(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

bool begins_as_library(const Header& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
}

/// A library for other processors is passed over by the loader.
bool is_of_other_class(const std::string& path) {
  Header header{};
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(&header), EI_CLASS + 1);
  return file && begins_as_library(header) &&
         header.e_ident[EI_CLASS] != (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32);
}

/// Whether the loader stops its search at this path: not where nothing can be read.
bool stops_at(const std::string& path) {
  if (access(path.c_str(), R_OK) != 0) return errno == ELOOP;
  struct stat about {};
  const bool is_file = stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode);
  return !is_file || !is_of_other_class(path);
}

/// Folders in the order of the loader's search: `first` before its cache, `system` after it.
struct SearchFolders {
  std::vector<std::string> first, system;
};

SearchFolders search_folders() {
  SearchFolders folders;
  void* program = dlopen(nullptr, RTLD_LAZY);
  Dl_serinfo size{};
  if (program == nullptr || dlinfo(program, RTLD_DI_SERINFOSIZE, &size) != 0) return folders;
  std::vector<std::max_align_t> memory(size.dls_size / sizeof(std::max_align_t) + 1);
  auto* list = reinterpret_cast<Dl_serinfo*>(memory.data());
  list->dls_size = size.dls_size;
  list->dls_cnt = size.dls_cnt;
  if (dlinfo(program, RTLD_DI_SERINFO, list) != 0) return folders;
  const Dl_serpath* path = list->dls_serpath;
  for (unsigned i = 0; i < list->dls_cnt; ++i) {
    const bool is_system = (path[i].dls_flags & LA_SER_DEFAULT) != 0;
    const std::string name = path[i].dls_name;
    (is_system ? folders.system : folders.first).push_back(name.empty() ? "." : name);
  }
  return folders;
}

/// Paths of this name in the loader's cache: a header of 48 bytes, then entries of 24 with the
/// places of name and path at bytes 4 and 8, from the header's begin.
std::vector<std::string> cached_files(const std::string& name) {
  std::ifstream file("/etc/ld.so.cache", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string_view magic = "glibc-ld.so.cache1.1";
  const std::size_t start = text.find(magic);
  std::vector<std::string> found;
  if (start == std::string::npos) return found;
  const std::string_view cache = std::string_view(text).substr(start);
  const auto number = [&](std::size_t place) {
    std::uint32_t value = 0;
    if (place + sizeof value <= cache.size())
      std::memcpy(&value, cache.data() + place, sizeof value);
    return std::size_t{value};
  };
  const auto word = [&](std::size_t place) {
    if (place >= cache.size()) return std::string_view();
    const std::string_view rest = cache.substr(place);
    return rest.substr(0, rest.find('\0'));
  };
  constexpr std::size_t header = 48, entry = 24;
  const std::size_t entries = std::min(number(magic.size()), cache.size() / entry);
  for (std::size_t at = header; at < header + entries * entry; at += entry) {
    if (word(number(at + 4)) == name) found.emplace_back(word(number(at + 8)));
  }
  return found;
}

}  // namespace

std::string file_problem(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) return std::generic_category().message(errno);
  if (S_ISDIR(about.st_mode)) return "it is a folder";
  if (!S_ISREG(about.st_mode)) return "it is no regular file";
  if (about.st_size == 0) return "it is empty";
  const auto size = static_cast<std::uint64_t>(about.st_size);
  const auto cut_short = [&](const std::string& what) {
    return "it was cut short: " + what + " beyond its " + std::to_string(size) + " bytes";
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) return "it cannot be read";
  Header header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!begins_as_library(header)) return no_library;
  if (size < sizeof header) return cut_short("its header goes");
  if (is_of_other_class(path) || header.e_phentsize != sizeof(Segment)) return "";
  const std::uint64_t segments = header.e_phnum;
  if (!ends_within(header.e_phoff, segments * sizeof(Segment), size))
    return cut_short("its list of segments goes");
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (std::uint64_t i = 0; i < segments; ++i) {
    Segment segment{};
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment)) return "it cannot be read";
    if (segment.p_type == PT_LOAD && !ends_within(segment.p_offset, segment.p_filesz, size))
      return cut_short("a segment goes");
  }
  const std::uint64_t sections = std::uint64_t{header.e_shnum} * header.e_shentsize;
  if (header.e_shoff != 0 && !ends_within(header.e_shoff, sections, size))
    return cut_short("its list of sections goes");
  return "";
}

std::string loader_file(const std::string& name) {
  const SearchFolders folders = search_folders();
  const auto first_in = [&](const std::vector<std::string>& list) -> std::string {
    for (const std::string& folder : list) {
      if (const std::string path = folder + "/" + name; stops_at(path)) return path;
    }
    return "";
  };
  if (const std::string path = first_in(folders.first); !path.empty()) return path;
  for (const std::string& path : cached_files(name)) {
    if (stops_at(path)) return path;
  }
  return first_in(folders.system);
}

}  // namespace tandem::cuda
