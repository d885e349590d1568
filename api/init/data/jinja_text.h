// Splits a Jinja text into what it writes, what it decides and the words of both; runs nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::api {

struct JinjaWord {
  enum class Kind : std::uint8_t { string, name, number, sign };
  Kind kind = Kind::sign;
  std::string text;  // a string is without its quotes and escapes

  bool is(std::string_view what) const { return kind != Kind::string && text == what; }
};

struct JinjaPart {
  enum class Kind : std::uint8_t { text, output, block };  // as it stands, {{ … }}, {% … %}
  Kind kind = Kind::text;
  std::string text;              // if it is Kind::text
  std::vector<JinjaWord> words;  // in the others
};

/// Comments are left out, and white space as transformers leaves it out (trim_blocks,
/// lstrip_blocks). Nullopt: a tag or a string does not end.
std::optional<std::vector<JinjaPart>> jinja_parts(std::string_view text);

}  // namespace tandem::api
