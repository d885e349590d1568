// Prepares text for terminals and shells.
#include "api/program/terminal.h"

#include "engine/formats/tokenizer/utf8.h"

namespace tandem::api {

std::string for_terminal(std::string_view text) { return printable(text, "\n\t"); }

std::string for_shell(std::string_view text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=+,@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos)
    return std::string(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace tandem::api
