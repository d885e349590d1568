// What the declaration of a key says besides its name and its member.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/config/keys/config_keys.h"
#include "engine/graph/number_range.h"

namespace tandem {

/// Attributes of a key besides its name and its member.
struct KeyNotes {
  KeyInfo info;                 // a fallback replaces the member's own value
  bool is_written = true;       // in the resolved file
  bool is_on_one_line = false;  // a table: written as { … }
  bool is_below = false;        // the upper end of the kind's range is excluded
  std::vector<KeyInfo> parts;   // keys of the parts of the value; their paths follow the key's
  std::string_view time_refusal = "";  // the message for durations that are times; "": they may be
};

// Notes, in any order: v.key("patience", c.patience, at_least(0), "the help"). Ranges are those of
// number_range.h: at_least, between, from_below.
inline constexpr auto required = [](KeyNotes& n) { n.info.fallback = "required"; };
inline constexpr auto on_one_line = [](KeyNotes& n) { n.is_on_one_line = true; };
/// "below 1"
std::string below_text(double high);
/// "a|b|c": the words for a text.
inline auto one_of(std::string_view words) {
  return [=](KeyNotes& n) { n.info.allowed = words; };
}
/// Other spellings of the words: {"|", "bar"}.
inline auto also_spelled(std::span<const std::pair<std::string_view, std::string_view>> spellings) {
  return [=](KeyNotes& n) { n.info.spellings = spellings; };
}
/// The default, as TOML or as "(words)".
inline auto by_default(std::string_view text) {
  return [=](KeyNotes& n) { n.info.fallback = text; };
}
/// The resolved file leaves the key out otherwise.
inline auto written_if(bool is_written) {
  return [=](KeyNotes& n) { n.is_written = is_written; };
}
/// A plain value of the type, written in place of the table, sets the table's key `name`.
inline auto or_only(std::string_view name, unsigned type) {
  return [=](KeyNotes& n) { n.info.short_key = name, n.info.type = type; };
}
/// For a path: "" undoes the value from another file or argument.
inline constexpr auto may_be_empty = [](KeyNotes& n) { n.info.may_be_empty = true; };
/// The table has the same keys as another one, which the page of docs/ describes.
inline auto same_as(std::string_view key) {
  return [=](KeyNotes& n) { n.info.same_as = key; };
}
/// Refuses durations that are times, with this message.
constexpr auto no_times(std::string_view refusal) {
  return [=](KeyNotes& n) { n.time_refusal = refusal; };
}
inline void note(KeyNotes& all, std::string_view help) { all.info.help = help; }
inline void note(KeyNotes& all, const NumberRange& range) {
  all.info.low = range.low, all.info.high = range.high, all.is_below = range.below;
}
template <class Note>
requires std::is_invocable_v<Note, KeyNotes&>
void note(KeyNotes& all, const Note& change) { change(all); }
/// The values in a list ("[]"), or under any name in a table (".*").
template <class... Notes>
auto parts(std::string_view suffix, unsigned type, const Notes&... notes) {
  KeyNotes part{{.path = suffix, .type = type}};
  (note(part, notes), ...);
  return [row = part.info](KeyNotes& n) { n.parts.push_back(row); };
}

}  // namespace tandem
