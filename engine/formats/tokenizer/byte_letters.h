// GPT-2's letters for bytes: printable ones of Latin-1 are themselves, the other 68 are U+0100 and
// on, so that every byte is a visible character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

void append_byte_letter(std::string& to, unsigned char byte);
/// The byte that a character represents; -1: none.
int byte_of_letter(char32_t letter);

/// "<0x0A>": how tokens of single bytes are written.
std::string byte_token(unsigned char byte);
/// The byte of such a token; -1: it is none.
int byte_of_token(std::string_view token);

}  // namespace tandem
