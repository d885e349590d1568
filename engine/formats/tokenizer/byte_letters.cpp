#include "engine/formats/tokenizer/byte_letters.h"

#include <array>

#include "engine/formats/tokenizer/utf8.h"

namespace tandem {
namespace {

constexpr int first_other = 0x100, others = 68;

constexpr bool is_own_letter(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
         (byte >= 0xae && byte <= 0xff);
}

struct ByteLetters {
  std::array<char32_t, 256> letter{};
  std::array<int, others> byte{};
};
constexpr ByteLetters make_letters() {
  ByteLetters all;
  int other = 0;
  for (int byte = 0; byte < 256; ++byte) {
    if (is_own_letter(byte)) {
      all.letter[static_cast<std::size_t>(byte)] = static_cast<char32_t>(byte);
    } else {
      all.letter[static_cast<std::size_t>(byte)] = static_cast<char32_t>(first_other + other);
      all.byte[static_cast<std::size_t>(other++)] = byte;
    }
  }
  return all;
}
constexpr ByteLetters byte_letters = make_letters();
static_assert(byte_letters.letter[' '] == 0x120 && byte_letters.letter['\n'] == 0x10a);

constexpr char hex_digits[] = "0123456789ABCDEF";

}  // namespace

void append_byte_letter(std::string& to, unsigned char byte) {
  append_character(to, byte_letters.letter[byte]);
}

int byte_of_letter(char32_t letter) {
  if (letter < 0x100)
    return is_own_letter(static_cast<int>(letter)) ? static_cast<int>(letter) : -1;
  const char32_t other = letter - first_other;
  return other < others ? byte_letters.byte[other] : -1;
}

std::string byte_token(unsigned char byte) {
  return std::string("<0x") + hex_digits[byte >> 4] + hex_digits[byte & 15] + ">";
}

int byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int byte = 0;
  for (const char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    byte = byte * 16 + digit;
  }
  return byte;
}

}  // namespace tandem
