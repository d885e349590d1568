// The keys that several kinds of something have (losses, optimizers), put together: each stands
// once, with what the kinds say of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

std::string joined(const std::vector<std::string>& parts, std::string_view separator);

/// A value of a key, and the kinds that have it so.
struct Said {
  std::string text;
  std::vector<std::string> kinds;
};
void say(std::vector<Said>& all, std::string_view text, std::string_view kind);

/// A key of some kinds, while they are gathered.
struct Gathered {
  std::string key;
  unsigned type = 0;
  double low = 1e300, high = -1e300;  // the widest range
  std::string allowed, item_help;
  std::vector<Said> helps, fallbacks;
};
/// That of the key, which is appended where it is new.
Gathered& gathered(std::vector<Gathered>& all, std::string_view key);

/// "help (kinds); other help (other kinds)"
std::string help_of(const Gathered& key);
/// As KeyInfo::fallback, by kinds where they differ.
std::string fallback_of(const std::vector<Said>& fallbacks);

}  // namespace tandem
