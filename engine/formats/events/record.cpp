#include "engine/formats/events/record.h"

#include <cstdint>

#include "engine/formats/events/crc32c.h"

namespace tandem {
namespace {

constexpr std::size_t length_bytes = 8, checksum_bytes = 4;

template <class T>
std::string little_endian(T value) {
  std::string text;
  for (std::size_t i = 0; i < sizeof value; ++i) text += static_cast<char>(value >> 8 * i & 255);
  return text;
}

template <class T>
T from_little_endian(std::string_view text) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    value |= static_cast<T>(static_cast<unsigned char>(text[i])) << 8 * i;
  return value;
}

bool has_checksum(std::string_view bytes, std::string_view checksum) {
  return from_little_endian<std::uint32_t>(checksum) == masked_crc32c(bytes);
}

}  // namespace

std::string tf_record(std::string_view bytes) {
  const std::string length = little_endian<std::uint64_t>(bytes.size());
  return length + little_endian(masked_crc32c(length)) + std::string(bytes) +
         little_endian(masked_crc32c(bytes));
}

std::optional<std::string_view> TfRecords::next() {
  const std::string_view rest = text_.substr(offset_);
  constexpr std::size_t head = length_bytes + checksum_bytes;
  if (rest.size() < head + checksum_bytes) return std::nullopt;
  const std::string_view length = rest.substr(0, length_bytes);
  if (!has_checksum(length, rest.substr(length_bytes, checksum_bytes))) return std::nullopt;
  const auto bytes = from_little_endian<std::uint64_t>(length);
  if (bytes > rest.size() - head - checksum_bytes) return std::nullopt;
  const std::string_view content = rest.substr(head, bytes);
  if (!has_checksum(content, rest.substr(head + bytes, checksum_bytes))) return std::nullopt;
  offset_ += head + bytes + checksum_bytes;
  return content;
}

}  // namespace tandem
