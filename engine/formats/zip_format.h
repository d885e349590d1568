// Numbers of the zip format.
#pragma once

#include <cstdint>

namespace tandem {

constexpr std::uint32_t local_signature = 0x04034b50, central_signature = 0x02014b50,
                        end_signature = 0x06054b50, end64_signature = 0x06064b50,
                        locator_signature = 0x07064b50;
/// In place of a number of 32 bits: the number is in the zip64 field.
constexpr std::uint32_t in_zip64 = 0xffffffff;

}  // namespace tandem
