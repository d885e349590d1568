// What a tokenizer is made of. Each part is one file, which reads its settings of tokenizer.json,
// and a line in the list of its kind: normalizers/lowercase.cpp is the shortest to learn from.
// Where text does not fit a part while it works, it throws std::invalid_argument (what is wrong).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/formats/json_file.h"
#include "engine/formats/tokenizer/token_table.h"
#include "engine/formats/tokenizer/words.h"

namespace tandem {

/// Text to text. One that changes the front of a text reports that, as `Words::from_start` needs
/// it.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void normalize(std::string& text, bool& from_start) const = 0;
};

/// Cuts words, or writes them in other letters.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void split(Words& words) const = 0;
};

/// Scratch memory of models, for one thread.
struct ModelScratch {
  struct Symbol {
    std::uint32_t id = 0;
    std::int32_t before = -1, next = -1;
    bool is_there = true;
  };
  struct Merge {
    std::uint32_t rank, id;
    std::int32_t at;
  };
  struct Node {
    double score = 0;
    std::int64_t start = -1;
    std::uint32_t id = 0;
  };
  std::vector<Symbol> symbols;
  std::vector<Merge> merges;
  std::vector<Node> nodes;
  std::vector<TextRange> pieces;
  std::vector<std::uint32_t> bytes;
  std::string text;
};

/// Words to tokens.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  /// Appends the ids of a word, which is not empty.
  virtual void encode(std::string_view word, std::vector<std::uint32_t>& ids,
                      ModelScratch& scratch) const = 0;
  virtual const TokenTable& tokens() const = 0;
  /// The token for text that is in no other token.
  virtual std::optional<std::uint32_t> unknown() const = 0;
};

/// Tokens that are put around those of a text.
struct TokenFrame {
  struct Token {
    std::uint32_t id = 0;
    std::uint8_t type = 0;
  };
  std::vector<Token> before, behind;
  std::uint8_t type = 0;  // segment type of the text's own tokens
  bool is_set = false;

  std::size_t size() const { return before.size() + behind.size(); }
};

/// Adds to the frame; there is one at most.
class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  virtual void add(TokenFrame& frame) const = 0;
};

/// Tokens to text: each changes the list, and what is left in the end is put together.
class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  virtual void decode(std::vector<std::string>& tokens) const = 0;
};

template <class Part>
struct PartKind {
  std::string_view name;  // under "type"
  std::unique_ptr<const Part> (*read)(const JsonItem& item);
};
std::span<const PartKind<Normalizer>> all_normalizers();
std::span<const PartKind<PreTokenizer>> all_pre_tokenizers();
std::span<const PartKind<TokenModel>> all_token_models();
std::span<const PartKind<PostProcessor>> all_post_processors();
std::span<const PartKind<TokenDecoder>> all_token_decoders();

// Each throws Error{data} with the file and the keys; a "type" that has no part is named.
std::unique_ptr<const Normalizer> read_normalizer(const JsonItem& item);
std::unique_ptr<const PreTokenizer> read_pre_tokenizer(const JsonItem& item);
/// Files of early versions have no "type", which then follows from other keys.
std::unique_ptr<const TokenModel> read_token_model(const JsonItem& item);
std::unique_ptr<const PostProcessor> read_post_processor(const JsonItem& item);
std::unique_ptr<const TokenDecoder> read_token_decoder(const JsonItem& item);

// Values that may be missing or null.
std::optional<JsonItem> find_set(const JsonItem& item, std::string_view key);
bool flag(const JsonItem& item, std::string_view key, bool fallback);
std::string text_at(const JsonItem& item, std::string_view key, std::string fallback);
/// A text of one character.
std::string character_at(const JsonItem& item, std::string_view key, std::string_view fallback);

/// Bounds texts, since a part may get its own result again. Throws std::invalid_argument above 256
/// MiB.
void check_size(const std::string& text);

/// {"String": "…"} or {"Regex": "…"}.
class TextMatcher {
 public:
  explicit TextMatcher(const JsonItem& item);
  /// As Pattern::for_all.
  void for_all(std::string_view text, const std::function<void(const TextRange&)>& f) const;

 private:
  std::string literal_;
  std::shared_ptr<const Pattern> pattern_;  // null: the literal
};
/// Every match becomes `content`.
void replace_matches(const TextMatcher& matcher, const std::string& content, std::string& text);

}  // namespace tandem
