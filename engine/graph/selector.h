// Selectors: anchored globs over the paths of operators and parameters, one grammar for policy
// rules, freezing, loading, initialising, optimizer groups and export filters.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// The grammar. A path is parts joined by `.`, a parameter's ends in `:role`.
///   `*` `?`        any characters, one character; neither passes `.` or `:`
///   `**`           any number of whole parts: `**.x`, `x.**`, `x.**.y` also match with none
///   `{0..5}`       a number in that range, without leading zeros
///   `{a,b}`        one of these (globs themselves)
///   `re:'...'`     an anchored ECMAScript regular expression, without back-references; the quotes
///                  may be left out
/// The whole path must match: `layers.1` never matches `layers.10`.
class Selector {
 public:
  /// Throws Error{usage} (path = the text) where it cannot be read.
  explicit Selector(std::string_view text);

  bool matches(std::string_view path) const;
  /// Whether it means this parameter: its path ("fc1:weight") or its raw name in the file matches;
  /// or the selector has no `:` and matches the parameter's scope ("fc1"), or every operator that
  /// reads it ("fc1.Gemm"; pass them as `readers`).
  bool covers_parameter(std::string_view path, std::string_view raw_name,
                        std::span<const std::string> readers = {}) const;

  const std::string& text() const { return text_; }

 private:
  struct Pattern;
  std::string text_;
  bool names_role_ = false;  // has a `:`
  std::shared_ptr<const Pattern> pattern_;
};

/// Insertions, deletions, replacements and swaps of neighbours that turn one into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);
/// The name nearest to `wanted`, or "" where none is near (more than a third of it would change).
std::string nearest_name(std::string_view wanted, std::span<const std::string> names);

}  // namespace tandem
