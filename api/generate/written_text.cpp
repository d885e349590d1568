#include "api/generate/written_text.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

namespace tandem::api {
namespace {

constexpr std::string_view unknown_character = "\xef\xbf\xbd";  // U+FFFD

/// The length of the longest end of `text` that `stop` begins with.
std::size_t common_length(std::string_view text, std::string_view stop) {
  for (std::size_t length = std::min(text.size(), stop.size()); length > 0; --length) {
    if (text.ends_with(stop.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace

WrittenText::WrittenText(const TextEncoder& encoder, std::vector<std::uint32_t> prompt,
                         std::vector<std::string> stops)
    : encoder_(encoder), stops_(std::move(stops)), ids_(std::move(prompt)), next_(ids_.size()) {}

/// What the tokens after next_ add to the text of those before; "" while their last character may
/// be incomplete.
std::string WrittenText::decoded(bool is_last) {
  const std::span<const std::uint32_t> all(ids_);
  const std::string before = encoder_.decode(all.subspan(known_, next_ - known_));
  std::string with = encoder_.decode(all.subspan(known_));
  if (!is_last && with.ends_with(unknown_character)) return "";
  // Bytes that turn out to form no character change the text before: then without context.
  std::string added =
      with.starts_with(before) ? with.substr(before.size()) : encoder_.decode(all.subspan(next_));
  if (added.empty()) return added;
  known_ = next_;
  next_ = ids_.size();
  return added;
}

/// Takes what can be given from the held text.
std::string WrittenText::released(bool is_last) {
  std::size_t end = held_.size();
  for (const std::string& stop : stops_) {
    const std::size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    is_stopped_ = true;
    end = std::min(end, at);
  }
  if (!is_stopped_ && !is_last) {
    std::size_t kept = 0;
    for (const std::string& stop : stops_) kept = std::max(kept, common_length(held_, stop));
    end -= kept;
  }
  std::string piece = held_.substr(0, end);
  held_ = is_stopped_ ? "" : held_.substr(end);
  text_ += piece;
  return piece;
}

std::string WrittenText::add(std::uint32_t id) {
  if (is_stopped_) return "";
  ids_.push_back(id);
  held_ += decoded(false);
  return released(false);
}

std::string WrittenText::finish() {
  if (is_stopped_) return "";
  if (next_ < ids_.size()) held_ += decoded(true);
  return released(true);
}

}  // namespace tandem::api
