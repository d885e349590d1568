// Parts of a model or of data with what is known of each, to find the first one that has changed.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tandem {

struct RecordedPart {
  std::string id;                  // "operator 3", "images = train.idx", "samples"
  std::string name;                // for people; not compared
  std::vector<std::string> facts;  // "attribute pads [1, 1]"; none: not known, so not compared
  bool operator==(const RecordedPart&) const = default;
};

/// A difference between two records of the same thing.
struct Difference {
  std::string where;   // "data.train: train.npz", "operator 5 (/pool1/MaxPool)"
  std::string before;  // "" where there was none
  std::string now;     // "" where there is none
};
/// "operator 5 (/pool1/MaxPool): operator MaxPool, now operator AveragePool"
std::string to_string(const Difference& difference);

/// The first part that differs, if any, with the facts that only one of the two has. `where`: what
/// the whole is called, or "".
std::optional<Difference> first_difference(const std::string& where,
                                           const std::vector<RecordedPart>& before,
                                           const std::vector<RecordedPart>& now);

}  // namespace tandem
