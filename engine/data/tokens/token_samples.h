// Samples of token ids: which window is where, and the three arrays that are made of windows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/array_set.h"
#include "engine/data/tokens/token_sequence.h"

namespace tandem {

/// Windows of a stream of that many tokens: those that all tokens and targets are there for. The
/// rest at the end is in none.
std::int64_t windows_of_stream(std::int64_t tokens, const TokenWindows& windows);
/// Windows of a document: as many as every target needs; the last one may reach past the end.
std::int64_t windows_of_document(std::int64_t tokens, const TokenWindows& windows);

/// The value of targets after the end of a document: the label that PyTorch's losses ignore by
/// default.
inline constexpr std::int64_t ignored_target = -100;

struct TokenScan {
  std::int64_t vocabulary = 0;  // ids have to be below; 0: any
  int threads = 1;
  std::function<void()> check_stop;  // may throw
};

/// All windows of the sequences, in order. Windows lie within one sequence.
class TokenSamples {
 public:
  /// Reads every id once. Reports ids that are not in the vocabulary, and data without windows.
  static std::shared_ptr<const TokenSamples> open(
      std::vector<std::unique_ptr<TokenSequence>> sequences, const TokenWindows& windows,
      const TokenScan& scan, std::vector<Diagnostic>& errors);

  const TokenWindows& windows() const { return windows_; }
  std::int64_t samples() const { return samples_; }
  std::int64_t greatest() const { return greatest_; }
  std::int64_t least() const { return least_; }
  /// Whether a window reaches past the end of its document.
  bool pads() const { return pads_; }

  // Each writes `length` numbers.
  void tokens(std::int64_t sample, std::int64_t* to) const;
  void targets(std::int64_t sample, std::int64_t* to) const;
  /// 1 where the target is a token, 0 after the end.
  void mask(std::int64_t sample, std::int64_t* to) const;

  const std::string& file(std::int64_t sample) const;
  /// Which window of its file it is, from 1.
  std::int64_t row_in_file(std::int64_t sample) const;

 private:
  /// A file. Document i has the tokens from starts[i] to starts[i + 1] and begins with window
  /// `firsts[i]`; without borders the file is one.
  struct Part {
    std::unique_ptr<TokenSequence> sequence;
    std::vector<std::int64_t> starts, firsts;
    std::int64_t end = 0;  // sample number after its last window
  };
  struct Window {
    const TokenSequence* sequence;
    std::int64_t first, left;  // tokens: where it starts, and how many the document has from there
  };
  Window find(std::int64_t sample) const;
  const Part& part_of(std::int64_t sample) const;

  std::vector<Part> parts_;
  TokenWindows windows_;
  std::int64_t samples_ = 0, least_ = 0, greatest_ = 0;
  bool pads_ = false;
};

/// The arrays `tokens`, `targets` and `mask`, of int64 [length]; those of these names.
std::shared_ptr<const ArraySet> token_arrays(std::shared_ptr<const TokenSamples> samples,
                                             const ArrayNames& names);

}  // namespace tandem
