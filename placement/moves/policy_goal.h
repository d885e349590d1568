// Compares texts of one policy by what they ask for.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "placement/moves/asked_values.h"
#include "placement/moves/move_items.h"

namespace tandem {

using MovedValues = std::vector<std::pair<std::string, std::optional<std::string>>>;

inline constexpr std::array<std::string_view, 3> parts_of_on{"run", "param", "state"};

/// With `on` as run, param and state.
MovedValues spread_on(const MovedValues& set);

/// Texts of a policy for one model, which outlives it.
class PolicyTexts {
 public:
  PolicyTexts(std::string path, const MovedIn& model) : path_(std::move(path)), model_(model) {}

  const std::string& path() const { return path_; }
  Policy policy(const std::string& text) const;
  AskedValues asked(const std::string& text) const;
  /// What any of the selectors matches; ascending.
  RuleMatches matches(const std::vector<std::string>& selectors) const;
  /// One selector that covers exactly these, or "".
  std::string selector_of(const RuleMatches& all) const;

 private:
  std::string path_;
  const MovedIn& model_;
};

/// What a text has to ask for.
class PolicyGoal {
 public:
  /// What `before` asks for, but for the moved items, which get the values; those without a value
  /// may get any.
  PolicyGoal(const AskedValues& before, const RuleMatches& moved, const MovedValues& set);

  bool is_met_by(const AskedValues& asked) const;

 private:
  AskedValues wanted_;
};

}  // namespace tandem
