// Notes of a plan about copies from one order in memory to another: who looks into a plan wants
// them, who trains does not.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

/// What such a note begins with.
inline constexpr std::string_view reorder_note = "copy of '";

inline bool is_reorder_note(const std::string& note) { return note.starts_with(reorder_note); }

}  // namespace tandem
