#include "engine/formats/events/crc32c.h"

#include <array>

namespace tandem {
namespace {

constexpr std::array<std::uint32_t, 256> crc32c_table() {
  constexpr std::uint32_t reflected = 0x82F63B78;  // 0x1EDC6F41 with its bits reversed
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? reflected : 0);
    table[byte] = value;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> crc32c_steps = crc32c_table();

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t value = 0xFFFFFFFF;
  for (const char c : bytes)
    value = (value >> 8) ^ crc32c_steps[(value ^ static_cast<unsigned char>(c)) & 255];
  return value ^ 0xFFFFFFFF;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  const std::uint32_t value = crc32c(bytes);
  return ((value >> 15) | (value << 17)) + 0xA282EAD8;
}

}  // namespace tandem
