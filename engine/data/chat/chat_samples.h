// Samples of conversations: windows that hold one, or several whose attention does not mix them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/data/array_set.h"
#include "engine/data/chat/chat_encoder.h"
#include "engine/data/tokens/token_counts.h"

namespace tandem {

struct ChatWindows {
  std::int64_t length = 0;  // tokens of a sample
  bool packs = false;       // several conversations of one file in a sample
  std::uint32_t pad = 0;
};

class ChatSamples {
 public:
  explicit ChatSamples(const ChatWindows& windows) : windows_(windows) {}

  /// The conversations that follow are of this file.
  void begin_file(std::string path) { files_.push_back(std::move(path)); }
  /// Adds a conversation, cut to the length of a sample.
  void add(std::int64_t line, const ChatTokens& tokens);
  /// Makes the samples, when all conversations are there. A packed one is filled by the longest
  /// conversations first, each in the fullest sample that has room for it. Samples are sorted by
  /// the first line that each one holds.
  void arrange();

  std::int64_t samples() const { return static_cast<std::int64_t>(firsts_.size()) - 1; }
  const ChatWindows& windows() const { return windows_; }
  const TokenCounts& counts() const { return counts_; }
  TokenCounts& counts() { return counts_; }
  std::int64_t greatest() const { return greatest_; }
  std::size_t bytes() const;

  // Each writes `length` values; `attention` length times length.
  void tokens(std::int64_t sample, std::int64_t* to) const;
  /// The token that follows where it is one of an answer, else the label that is ignored.
  void targets(std::int64_t sample, std::int64_t* to) const;
  /// 1 for tokens, 0 for what is filled up.
  void mask(std::int64_t sample, std::int64_t* to) const;
  /// From 0 in each conversation; what is filled up goes on from the last one.
  void positions(std::int64_t sample, std::int64_t* to) const;
  /// Whether a place (row) may see another one: itself, and those before it in its conversation.
  void attention(std::int64_t sample, bool* to) const;

  const std::string& file(std::int64_t sample) const;
  std::int64_t line(std::int64_t sample) const;

 private:
  struct Talk {              // a conversation
    std::size_t begin, end;  // in ids_
    std::uint32_t file, line;
  };
  std::span<const std::uint32_t> talks_of(std::int64_t sample) const;
  const Talk& first_of(std::int64_t sample) const { return talks_[talks_of(sample)[0]]; }
  template <class F>
  std::int64_t for_talks(std::int64_t sample, F f) const;

  ChatWindows windows_;
  std::vector<std::uint32_t> ids_;  // with answer_bit
  std::vector<Talk> talks_;
  std::vector<std::string> files_;
  std::vector<std::uint32_t> order_;    // talks, sample after sample
  std::vector<std::size_t> firsts_{0};  // where each sample begins in order_, and the end
  std::int64_t greatest_ = 0;
  TokenCounts counts_;
};

/// The arrays `tokens`, `targets`, `mask`, `positions` of int64 [length] and `attention` of boolean
/// [length, length]; those of these names.
std::shared_ptr<const ArraySet> chat_arrays(std::shared_ptr<const ChatSamples> samples,
                                            const ArrayNames& names);

}  // namespace tandem
