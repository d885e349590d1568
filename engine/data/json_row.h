// A line of JSON as a row of cells: what an object has under some keys, as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// A number is kept as it is written, a text without quotes and escapes, true and false as 1 and 0,
/// null as nothing, a list of those with commas between. Other keys are skipped, whatever they
/// hold.
class JsonRow {
 public:
  /// `may_lack`, one a key: whether the object may be without it, which counts as null. Empty:
  /// every key has to be there.
  explicit JsonRow(std::vector<std::string> keys, std::vector<char> may_lack = {});

  struct Problem {
    std::string message, expected, got;
  };
  /// Takes a line, or says what is wrong; "" where nothing is.
  Problem take(std::string_view line);
  /// One a key, until the next line; empty of a line that something is wrong with.
  const std::vector<std::string_view>& cells() const { return cells_; }

 private:
  class Reader;

  std::vector<std::string> keys_;
  std::vector<char> may_lack_;
  std::vector<std::string> texts_;
  std::vector<char> found_;
  std::vector<std::string_view> cells_;
};

}  // namespace tandem
