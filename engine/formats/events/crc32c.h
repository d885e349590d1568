// CRC-32C (Castagnoli), the checksum of TFRecord files.
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem {

/// As in RFC 3720: reflected polynomial 0x1EDC6F41, start and end value inverted.
std::uint32_t crc32c(std::string_view bytes);

/// What TFRecord files store: the checksum turned by 15 bits, plus a constant, so that the checksum
/// of data that contains checksums stays useful.
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace tandem
