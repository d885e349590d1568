// Notes of a plan about copies that only reorder a value in memory: shown to people who inspect a
// plan, not to those who train.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

/// What such a note begins with.
inline constexpr std::string_view reorder_note = "copy of '";

inline bool is_reorder_note(const std::string& note) { return note.starts_with(reorder_note); }

}  // namespace tandem
