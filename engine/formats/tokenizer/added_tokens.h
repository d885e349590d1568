// Tokens that are found in a text before anything else is done to it: special ones, and words that
// were added to a vocabulary.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "engine/formats/tokenizer/byte_trie.h"
#include "engine/formats/tokenizer/parts.h"

namespace tandem {

class AddedTokens {
 public:
  static constexpr std::size_t most_tokens = std::size_t{1} << 17;
  /// A token, or the text between two.
  struct Part {
    TextRange range;
    std::uint32_t id = NumberTable::none;
    bool is_token() const { return id != NumberTable::none; }
  };

  /// "added_tokens"; ids that the vocabulary has are those of its tokens. Throws Error{data}.
  void read(const JsonItem& list, const TokenTable& vocabulary, const Normalizer* normalizer);

  /// Appends the parts of a text, none of which is empty. `normalized`: the text and the tokens
  /// that are looked for are.
  void find(std::string_view text, bool normalized, std::vector<Part>& parts) const;
  bool any(bool normalized) const { return normalized ? any_normalized_ : any_raw_; }

  /// Null where no added token has this id.
  const std::string* token(std::uint32_t id) const { return table_.token(id); }
  std::optional<std::uint32_t> find_token(std::string_view token) const {
    return table_.find(token);
  }
  bool is_special(std::uint32_t id) const { return specials_.contains(id); }
  /// One more than the greatest id.
  std::uint32_t size() const { return table_.size(); }

 private:
  struct Settings {
    std::uint32_t id = 0;
    bool single_word = false, left = false, right = false;
  };
  std::vector<Settings> settings_;
  ByteTrie raw_, normalized_;  // numbers are places in settings_
  bool any_raw_ = false, any_normalized_ = false;
  TokenTable table_;
  std::unordered_set<std::uint32_t> specials_;
};

}  // namespace tandem
