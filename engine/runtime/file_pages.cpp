#include "engine/runtime/file_pages.h"
#include "engine/graph/align.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

namespace tandem {

bool is_file_mapping(const void* data, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) return false;
  char line[512];
  bool found = false, starts_line = true;
  while (!found && std::fgets(line, sizeof line, maps) != nullptr) {
    std::size_t length = 0;
    while (line[length] != '\0') ++length;
    unsigned long long from = 0, to = 0, inode = 0;
    if (starts_line && std::sscanf(line, "%llx-%llx %*s %*s %*s %llu", &from, &to, &inode) == 3) {
      found = inode != 0 && from <= begin && begin + bytes <= to;
    }
    starts_line = length > 0 && line[length - 1] == '\n';
  }
  std::fclose(maps);
  return found;
}

namespace {

/// Advises about the pages that lie completely in the range.
void advise(const void* data, std::size_t bytes, int advice) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = align_up(reinterpret_cast<std::uintptr_t>(data), page);
  const auto end = (reinterpret_cast<std::uintptr_t>(data) + bytes) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}

}  // namespace

void release_file_pages(const void* data, std::size_t bytes) {
#if defined(MADV_PAGEOUT)
  advise(data, bytes, MADV_PAGEOUT);
#else
  (void)data, (void)bytes;
#endif
}

void drop_file_pages(const void* data, std::size_t bytes) { advise(data, bytes, MADV_DONTNEED); }

void drop_large_value(const void* data, std::size_t bytes) {
  if (bytes >= least_mapped_bytes && is_file_mapping(data, bytes)) drop_file_pages(data, bytes);
}

}  // namespace tandem
