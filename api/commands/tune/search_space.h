// What a search varies: keys of train.toml with the values that they may take.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tandem::api {

struct SearchedKey {
  enum class Kind : std::uint8_t { uniform, logarithmic, choice };

  std::string key;  // "optimizer.lr"
  Kind kind = Kind::choice;
  double low = 0, high = 0;            // range of a number
  bool is_whole = false;               // the key allows only whole numbers
  std::vector<std::string> choices{};  // values as TOML
};

/// A key with a value, each as the command line has it.
using TrialSettings = std::vector<std::pair<std::string, std::string>>;

class SearchSpace {
 public:
  /// Throws Error{usage} with everything that is wrong: keys that do not exist or that trials set
  /// themselves, and ranges that are empty.
  explicit SearchSpace(const std::vector<std::string>& over);

  const std::vector<SearchedKey>& keys() const { return keys_; }
  /// Settings of trials 1 to `count`, no two alike, as far as there are enough. The settings of a
  /// trial do not depend on how many follow.
  std::vector<TrialSettings> trials(std::uint64_t seed, std::int64_t count) const;
  /// The ends of all ranges and all choices, one key at a time: the limits of what trials may set.
  std::vector<TrialSettings> ends() const;

 private:
  std::vector<SearchedKey> keys_;
};

/// "KEY=VALUE" for each setting.
std::vector<std::string> overrides_of(const TrialSettings& settings);

}  // namespace tandem::api
