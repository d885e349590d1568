#include "engine/train/checkpoints/recorded_parts.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/graph/text.h"

namespace tandem {
namespace {

std::string label(const RecordedPart& part) {
  if (part.name.empty() || part.id.ends_with(" " + part.name)) return part.id;
  return part.id + " (" + part.name + ")";
}

std::string facts_of_one(const RecordedPart& part, const RecordedPart& other) {
  std::vector<std::string> facts = part.facts;
  std::erase_if(facts, [&](const std::string& fact) {
    return std::find(other.facts.begin(), other.facts.end(), fact) != other.facts.end();
  });
  return joined(facts);
}

}  // namespace

std::string to_string(const Difference& d) {
  return fmt::format("{}: {}, now {}", d.where, d.before.empty() ? "none" : d.before,
                     d.now.empty() ? "none" : d.now);
}

std::optional<Difference> first_difference(const std::string& where,
                                           const std::vector<RecordedPart>& before,
                                           const std::vector<RecordedPart>& now) {
  const RecordedPart none;
  for (std::size_t i = 0; i < std::max(before.size(), now.size()); ++i) {
    const RecordedPart& a = i < before.size() ? before[i] : none;
    const RecordedPart& b = i < now.size() ? now[i] : none;
    const bool is_same = a.facts.empty() || b.facts.empty() || a.facts == b.facts;
    if (a.id == b.id && is_same) continue;
    const std::string part = label(b.id.empty() ? a : b);
    Difference difference{where.empty() ? part : where + ": " + part, label(a), label(b)};
    if (a.id != b.id) return difference;
    difference.before = facts_of_one(a, b);
    difference.now = facts_of_one(b, a);
    return difference;
  }
  return std::nullopt;
}

}  // namespace tandem
