// Reading of gzip files, and zlib's raw deflate for zip archives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

/// The file's bytes, unpacked where it starts as a gzip file does (several members too; zeros
/// behind the last one are left out).
/// Error{data} with file and offset where it is broken, or unpacks to more than `limit` bytes.
std::vector<std::uint8_t> read_maybe_gzip(const std::string& path,
                                          std::uint64_t limit = std::uint64_t{1} << 36);

/// Unpacks raw deflate data of known size; false where it is broken or of another size.
bool inflate_raw(const std::uint8_t* from, std::size_t from_bytes, std::uint8_t* to,
                 std::size_t to_bytes);
std::vector<std::uint8_t> deflate_raw(const std::uint8_t* from, std::size_t bytes);
std::uint32_t crc32_of(const void* data, std::size_t bytes, std::uint32_t start = 0);

}  // namespace tandem
