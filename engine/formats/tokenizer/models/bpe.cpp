// BPE: the characters of a word, of which the pair that was learned first is merged again and
// again. A heap has the pairs of a word, so that a word of n characters takes n log n steps.
#include <algorithm>
#include <stdexcept>

#include "engine/formats/tokenizer/byte_trie.h"
#include "engine/formats/tokenizer/models/byte_ids.h"
#include "engine/formats/tokenizer/parts.h"

namespace tandem::token_models {
namespace {

using Symbol = ModelScratch::Symbol;
using Merge = ModelScratch::Merge;

std::uint64_t pair_key(std::uint32_t left, std::uint32_t right) {
  return std::uint64_t{left} << 32 | right;
}

/// The lowest rank first, then the place farthest left.
bool comes_later(const Merge& a, const Merge& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
}

class Bpe final : public TokenModel {
 public:
  explicit Bpe(const JsonItem& item)
      : prefix_(text_at(item, "continuing_subword_prefix", "")),
        suffix_(text_at(item, "end_of_word_suffix", "")),
        unknown_(text_at(item, "unk_token", "")),
        fuses_unknown_(flag(item, "fuse_unk", false)),
        takes_whole_words_(flag(item, "ignore_merges", false)) {
    if (const auto dropout = find_set(item, "dropout"); dropout && dropout->number(0, 1) > 0) {
      dropout->refuse("ids would differ from one time to the next", "no dropout");
    }
    tokens_.read(item.at("vocab"));
    unknown_id_ = tokens_.find(unknown_);
    if (flag(item, "byte_fallback", false)) {
      bytes_ = ByteIds(tokens_);
      falls_back_ = true;
    }
    read_merges(item.at("merges"));
  }

  const TokenTable& tokens() const override { return tokens_; }
  std::optional<std::uint32_t> unknown() const override { return unknown_id_; }

  void encode(std::string_view word, std::vector<std::uint32_t>& ids,
              ModelScratch& scratch) const override {
    if (takes_whole_words_) {
      if (const auto whole = tokens_.find(word)) return ids.push_back(*whole);
    }
    scratch.symbols.clear();
    take_characters(word, scratch);
    merge(scratch);
    for (const Symbol& symbol : scratch.symbols) {
      if (symbol.is_there) ids.push_back(symbol.id);
    }
  }

 private:
  void read_merges(const JsonItem& merges) {
    std::uint32_t rank = 0;
    for (const JsonItem& merge : merges.list()) {
      std::string left, right;
      if (merge.is_list()) {
        const std::vector<JsonItem> both = merge.list();
        if (both.size() != 2) merge.refuse("not a merge", "two tokens");
        left = both[0].any_text();
        right = both[1].any_text();
      } else {
        const std::string text = merge.any_text();
        const std::size_t space = text.find(' ');
        if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
          merge.refuse("not a merge", "two tokens with a space between");
        left = text.substr(0, space);
        right = text.substr(space + 1);
      }
      const auto left_id = tokens_.find(left), right_id = tokens_.find(right);
      if (!left_id || !right_id) merge.refuse("a merge of a token that is not in the vocabulary");
      const std::size_t cut = right.starts_with(prefix_) ? prefix_.size() : 0;
      const auto merged = tokens_.find(left + right.substr(cut));
      if (!merged) merge.refuse("what the merge makes is not in the vocabulary");
      places_.set(pair_key(*left_id, *right_id), rank++);
      merged_.push_back(*merged);
    }
  }

  void push(ModelScratch& scratch, std::uint32_t id) const {
    const auto at = static_cast<std::int32_t>(scratch.symbols.size());
    scratch.symbols.push_back({id, at - 1, at + 1, true});
  }

  /// Characters that the vocabulary has not become bytes or the unknown token.
  void take_characters(std::string_view word, ModelScratch& scratch) const {
    bool has_unknown = false;  // one is waiting for others that it may be fused with
    const bool is_plain = prefix_.empty() && suffix_.empty();
    std::vector<std::uint32_t>& of_bytes = scratch.bytes;
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t begin = at;
      at += character_bytes(word[at]);
      std::string_view character = word.substr(begin, at - begin);
      if (!is_plain) {
        scratch.text.clear();
        if (begin > 0) scratch.text += prefix_;
        scratch.text += character;
        if (at == word.size()) scratch.text += suffix_;
        character = scratch.text;
      }
      if (const auto id = tokens_.find(character)) {
        if (has_unknown) push(scratch, *unknown_id_);
        has_unknown = false;
        push(scratch, *id);
        continue;
      }
      of_bytes.clear();
      if (falls_back_ && bytes_.append(character, of_bytes)) {
        for (const std::uint32_t id : of_bytes) push(scratch, id);
        continue;
      }
      if (unknown_.empty()) continue;  // as if it were not there
      if (!unknown_id_) throw std::invalid_argument("the unknown token is not in the vocabulary");
      if (has_unknown && !fuses_unknown_) push(scratch, *unknown_id_);
      has_unknown = true;
    }
    if (has_unknown) push(scratch, *unknown_id_);
    if (!scratch.symbols.empty()) scratch.symbols.back().next = -1;
  }

  void add_pair(std::int32_t at, ModelScratch& scratch) const {
    const Symbol& left = scratch.symbols[static_cast<std::size_t>(at)];
    if (left.next < 0) return;
    const Symbol& right = scratch.symbols[static_cast<std::size_t>(left.next)];
    const std::uint32_t rank = places_.find(pair_key(left.id, right.id));
    if (rank == NumberTable::none) return;
    scratch.merges.push_back({rank, merged_[rank], at});
  }

  void merge(ModelScratch& scratch) const {
    std::vector<Merge>& heap = scratch.merges;
    heap.clear();
    for (std::size_t i = 0; i + 1 < scratch.symbols.size(); ++i)
      add_pair(static_cast<std::int32_t>(i), scratch);
    std::make_heap(heap.begin(), heap.end(), comes_later);
    const auto push_pair = [&](std::int32_t at) {
      const std::size_t before = heap.size();
      add_pair(at, scratch);
      if (heap.size() > before) std::push_heap(heap.begin(), heap.end(), comes_later);
    };
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), comes_later);
      const Merge top = heap.back();
      heap.pop_back();
      Symbol& left = scratch.symbols[static_cast<std::size_t>(top.at)];
      if (!left.is_there || left.next < 0) continue;
      Symbol& right = scratch.symbols[static_cast<std::size_t>(left.next)];
      // The pair may have changed since it was put into the heap.
      const std::uint32_t rank = places_.find(pair_key(left.id, right.id));
      if (rank == NumberTable::none || merged_[rank] != top.id) continue;
      left.id = top.id;
      right.is_there = false;
      left.next = right.next;
      if (right.next >= 0) scratch.symbols[static_cast<std::size_t>(right.next)].before = top.at;
      if (left.before >= 0) push_pair(left.before);
      push_pair(top.at);
    }
  }

  TokenTable tokens_;
  NumberTable places_;                 // a pair's place in merged_, which is its rank
  std::vector<std::uint32_t> merged_;  // the id that each pair becomes
  std::string prefix_, suffix_, unknown_;
  std::optional<std::uint32_t> unknown_id_;
  ByteIds bytes_;
  bool fuses_unknown_, takes_whole_words_, falls_back_ = false;
};

}  // namespace

PartKind<TokenModel> bpe() {
  return {"BPE", [](const JsonItem& item) -> std::unique_ptr<const TokenModel> {
            return std::make_unique<Bpe>(item);
          }};
}

}  // namespace tandem::token_models
