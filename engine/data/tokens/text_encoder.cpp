#include "engine/data/tokens/text_encoder.h"

#include <stdexcept>

#include "engine/formats/tokenizer/utf8.h"

namespace tandem {
namespace {

void check_utf8(std::string_view text) {
  const std::size_t at = invalid_utf8(text);
  if (at == std::string_view::npos) return;
  throw std::invalid_argument("the text is not UTF-8 at its byte " + std::to_string(at));
}

class ByteEncoder final : public TextEncoder {
 public:
  void encode(std::string_view text, EncodeScratch&,
              std::vector<std::uint32_t>& ids) const override {
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  }
  std::string decode(std::span<const std::uint32_t> ids) const override {
    std::string bytes;
    for (const std::uint32_t id : ids) {
      if (id < 256) bytes += static_cast<char>(id);
    }
    return with_replacements(bytes);
  }
  std::int64_t size() const override { return 256; }
};

class CharacterEncoder final : public TextEncoder {
 public:
  explicit CharacterEncoder(const Vocabulary& vocabulary)
      : ids_(0x110000), size_(vocabulary.rows()) {
    for (std::int64_t id = 1; id < vocabulary.size(); ++id)
      texts_.emplace_back(vocabulary.value(id));
    std::string text;
    for (char32_t c = 0; c < ids_.size(); ++c) {
      if (c >= 0xd800 && c < 0xe000) continue;  // surrogates
      text.clear();
      append_character(text, c);
      ids_[c] = static_cast<std::uint32_t>(vocabulary.id(0, text));
    }
  }
  void encode(std::string_view text, EncodeScratch&,
              std::vector<std::uint32_t>& ids) const override {
    check_utf8(text);
    for (std::size_t at = 0; at < text.size();) ids.push_back(ids_[next_character(text, at)]);
  }
  std::string decode(std::span<const std::uint32_t> ids) const override {
    std::string text;
    for (const std::uint32_t id : ids) {
      if (id > 0 && id <= texts_.size()) text += texts_[id - 1];
    }
    return text;
  }
  std::int64_t size() const override { return size_; }
  std::optional<std::uint32_t> unknown() const override { return 0; }

 private:
  std::vector<std::uint32_t> ids_;
  std::vector<std::string> texts_;  // by id, from 1 on
  std::int64_t size_;
};

class TokenEncoder final : public TextEncoder {
 public:
  explicit TokenEncoder(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)) {}
  void encode(std::string_view text, EncodeScratch& scratch,
              std::vector<std::uint32_t>& ids) const override {
    EncodedTokens encoded;
    tokenizer_->encode(text, {.adds_special = false}, scratch, encoded);
    ids.insert(ids.end(), encoded.ids.begin(), encoded.ids.end());
  }
  std::string decode(std::span<const std::uint32_t> ids) const override {
    return tokenizer_->decode(ids);
  }
  std::int64_t size() const override { return tokenizer_->size(); }
  std::optional<std::uint32_t> unknown() const override { return tokenizer_->unknown(); }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace

std::unique_ptr<const TextEncoder> byte_encoder() { return std::make_unique<ByteEncoder>(); }
std::unique_ptr<const TextEncoder> character_encoder(const Vocabulary& vocabulary) {
  return std::make_unique<CharacterEncoder>(vocabulary);
}
std::unique_ptr<const TextEncoder> token_encoder(std::shared_ptr<const Tokenizer> tokenizer) {
  return std::make_unique<TokenEncoder>(std::move(tokenizer));
}

void CharacterCounts::take(std::string_view text) {
  check_utf8(text);
  for (std::size_t at = 0; at < text.size();) ++times_[next_character(text, at)];
}

void CharacterCounts::add(const CharacterCounts& other) {
  for (std::size_t c = 0; c < times_.size(); ++c) times_[c] += other.times_[c];
}

Vocabulary CharacterCounts::vocabulary() const {
  ValueCounts values;
  for (std::size_t c = 0; c < times_.size(); ++c) {
    if (times_[c] == 0) continue;
    std::string text;
    append_character(text, static_cast<char32_t>(c));
    values.count(values.find_or_add(0, text), times_[c]);
  }
  std::vector<std::int32_t> ids;
  return Vocabulary(values, 1, ids);
}

}  // namespace tandem
