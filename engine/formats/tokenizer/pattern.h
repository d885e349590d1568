// Regular expressions of tokenizer.json: those that mean the same to Oniguruma, for which they are
// written, and to PCRE2. Where a build lacks it, no_pattern.cpp replaces pattern.cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// Bytes of a text.
struct TextRange {
  std::size_t begin = 0, end = 0;
  bool operator==(const TextRange&) const = default;
};

/// "" where the two libraries read an expression alike; else the part that they read differently.
std::string unportable_part(std::string_view expression);

class Pattern {
 public:
  /// Throws std::invalid_argument (what is wrong) where it is no expression or the libraries read
  /// it differently.
  explicit Pattern(const std::string& expression);
  ~Pattern();
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  /// Calls f for each match, from left to right; none of them is empty. The text is valid UTF-8.
  /// Any number of threads may ask. Throws std::invalid_argument where a match takes too long.
  void for_all(std::string_view text, const std::function<void(const TextRange&)>& f) const;

 private:
  struct Compiled;
  std::unique_ptr<const Compiled> compiled_;
};

/// Calls f for each occurrence of `literal`, which is not empty.
void for_all_of(std::string_view text, std::string_view literal,
                const std::function<void(const TextRange&)>& f);
void find_all_of(std::string_view text, std::string_view literal, std::vector<TextRange>& matches);

}  // namespace tandem
