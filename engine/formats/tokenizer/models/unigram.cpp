// Unigram: the tokens of a word whose scores, logarithms of probabilities, have the greatest sum
// (Viterbi). A character that no token begins with costs 10 more than the rarest token.
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "engine/formats/tokenizer/byte_trie.h"
#include "engine/formats/tokenizer/models/byte_ids.h"
#include "engine/formats/tokenizer/parts.h"

namespace tandem::token_models {
namespace {

constexpr double unknown_penalty = 10;
constexpr std::uint32_t no_id = ~std::uint32_t{0};

class Unigram final : public TokenModel {
 public:
  explicit Unigram(const JsonItem& item) {
    const JsonItem vocabulary = item.at("vocab");
    double least = std::numeric_limits<double>::infinity();
    std::uint32_t id = 0;
    for (const JsonItem& entry : vocabulary.list()) {
      const std::vector<JsonItem> both = entry.list();
      if (both.size() != 2) entry.refuse("not a token and its score", "[ token, score ]");
      if (id >= TokenTable::most_ids) entry.refuse("too many tokens");
      const double score =
          both[1].number(std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max());
      if (!tokens_.add(both[0].any_text(), id)) entry.refuse("this token is there twice");
      const std::string& token = *tokens_.token(id);
      if (!trie_.has_room(token)) {
        entry.refuse("the tokens are too long",
                     "at most " + std::to_string(ByteTrie::most_bytes) + " bytes together");
      }
      trie_.add(token, id);
      scores_.push_back(score);
      least = std::min(least, score);
      ++id;
    }
    if (scores_.empty()) vocabulary.refuse("the vocabulary is empty");
    unknown_score_ = least - unknown_penalty;
    if (const auto unknown = find_set(item, "unk_id")) {
      unknown_ = static_cast<std::uint32_t>(unknown->natural());
      if (unknown->natural() >= scores_.size())
        unknown->refuse("the unknown token is not in the vocabulary",
                        "below " + std::to_string(scores_.size()));
    }
    if (flag(item, "byte_fallback", false)) {
      bytes_ = ByteIds(tokens_);
      falls_back_ = true;
    }
  }

  const TokenTable& tokens() const override { return tokens_; }
  std::optional<std::uint32_t> unknown() const override {
    return unknown_ == no_id ? std::nullopt : std::optional(unknown_);
  }

  void encode(std::string_view word, std::vector<std::uint32_t>& ids,
              ModelScratch& scratch) const override {
    find_best(word, scratch);
    std::vector<TextRange>& pieces = scratch.pieces;  // from the last one to the first
    pieces.clear();
    bool fuses = false;  // the piece before is unknown, too
    for (std::size_t end = word.size(); end > 0;) {
      const ModelScratch::Node& node = scratch.nodes[end];
      const auto start = static_cast<std::size_t>(node.start);
      const bool is_unknown = unknown_ != no_id && node.id == unknown_;
      if (is_unknown && fuses)
        pieces.back().begin = start;
      else
        pieces.push_back({start, end});
      fuses = is_unknown;
      end = start;
    }
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
      const std::string_view text = word.substr(piece->begin, piece->end - piece->begin);
      if (const auto id = tokens_.find(text)) {
        ids.push_back(*id);
      } else if (!falls_back_ || !bytes_.append(text, ids)) {
        if (unknown_ == no_id) refuse_unknown();
        ids.push_back(unknown_);
      }
    }
  }

 private:
  [[noreturn]] static void refuse_unknown() {
    throw std::invalid_argument(
        "a character is in no token of the vocabulary, which has no unknown token");
  }

  /// The best way to every character: the score of it, and the token that it ends with.
  void find_best(std::string_view word, ModelScratch& scratch) const {
    std::vector<ModelScratch::Node>& nodes = scratch.nodes;
    nodes.assign(word.size() + 1, {});
    for (std::size_t at = 0; at < word.size();) {
      const double before = nodes[at].score;
      const std::size_t character = character_bytes(word[at]);
      bool has_single = false;
      const auto offer = [&](std::size_t end, double score, std::uint32_t id) {
        ModelScratch::Node& node = nodes[end];
        if (node.start >= 0 && !(score > node.score)) return;
        node = {score, static_cast<std::int64_t>(at), id};
      };
      trie_.for_beginnings(word.substr(at), [&](std::size_t bytes, std::uint32_t id) {
        offer(at + bytes, scores_[id] + before, id);
        has_single |= bytes == character;
      });
      if (!has_single) {
        if (unknown_ == no_id && !falls_back_) refuse_unknown();
        offer(at + character, unknown_score_ + before, unknown_);
      }
      at += character;
    }
  }

  TokenTable tokens_;
  ByteTrie trie_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  std::uint32_t unknown_ = no_id;
  ByteIds bytes_;
  bool falls_back_ = false;
};

}  // namespace

PartKind<TokenModel> unigram() {
  return {"Unigram", [](const JsonItem& item) -> std::unique_ptr<const TokenModel> {
            return std::make_unique<Unigram>(item);
          }};
}

}  // namespace tandem::token_models
