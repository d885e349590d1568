// What the literals of a Jinja text write around one message, in the order in which they stand.
// Nothing is run: an `if` is two ways, except where it asks for the role, the system message or
// tools; a loop is one pass.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/init/data/jinja_text.h"

namespace tandem::api {

/// Characters in written texts that stand for what is no literal.
namespace jinja_mark {
inline constexpr char role = '\x01', content = '\x02', trimmed = '\x03';  // from the message
inline constexpr char system = '\x04';                                    // content of another one
inline constexpr char begin_token = '\x05', end_token = '\x06', unknown = '\x07';
inline constexpr std::string_view all = "\x01\x02\x03\x04\x05\x06\x07";
}  // namespace jinja_mark

struct JinjaWay {
  std::string begin, turn, end;                   // before the loop over messages, in it, behind it
  std::set<std::string> roles;                    // the message may have
  std::optional<bool> has_system = std::nullopt;  // the conversation begins with a system message
  bool is_certain = true;                         // no condition on the way is of another kind
  auto operator<=>(const JinjaWay&) const = default;
};

struct JinjaWays {
  std::set<JinjaWay> ways;
  std::set<std::string> roles;  // further ones that conditions name
};

/// Nullopt: tags are of an unknown kind or do not close, or the ways are too many.
std::optional<JinjaWays> jinja_ways(const std::vector<JinjaPart>& parts);

}  // namespace tandem::api
