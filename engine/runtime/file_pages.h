// Gives back memory of mapped files, which counts as the process's own until then: for copies that
// read large files once.
#pragma once

#include <cstddef>

namespace tandem {

/// Smaller values need not be looked up among the mappings, which takes about 0.1 ms.
constexpr std::size_t least_mapped_bytes = std::size_t{1} << 20;

/// Whether the whole range lies in one mapping of a file.
bool is_file_mapping(const void* data, std::size_t bytes);

/// Asks the system to take the pages of a mapped file out of this process; their contents stay what
/// they are. Where it cannot, nothing happens.
void release_file_pages(const void* data, std::size_t bytes);

/// Like release_file_pages, but the system keeps the contents in memory for the next reader. Only
/// for pages that were not written to: what was written is lost.
void drop_file_pages(const void* data, std::size_t bytes);

/// drop_file_pages for a large value that lies in a mapped file; nothing for any other value.
void drop_large_value(const void* data, std::size_t bytes);

}  // namespace tandem
