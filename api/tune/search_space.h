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
  double low = 0, high = 0;            // of numbers
  bool is_whole = false;               // the key takes whole numbers alone
  std::vector<std::string> choices{};  // TOML
};

/// A key with a value, each as the command line has it.
using TrialSettings = std::vector<std::pair<std::string, std::string>>;

class SearchSpace {
 public:
  /// Throws Error{usage} with everything that is wrong: keys that are not there or that trials set
  /// themselves, ranges that are none.
  explicit SearchSpace(const std::vector<std::string>& over);

  const std::vector<SearchedKey>& keys() const { return keys_; }
  /// Settings of trials 1 to `count`, no two alike, as far as there are so many. Those of a number
  /// do not depend on how many follow.
  std::vector<TrialSettings> trials(std::uint64_t seed, std::int64_t count) const;
  /// The ends of all ranges and all choices, one key at a time: what no trial may lie beyond.
  std::vector<TrialSettings> ends() const;

 private:
  std::vector<SearchedKey> keys_;
};

/// "KEY=VALUE" of all.
std::vector<std::string> overrides_of(const TrialSettings& settings);

}  // namespace tandem::api
