// Encodes text to ids and back, by one of the three ways that data.tokenizer names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/vocabulary.h"
#include "engine/formats/tokenizer/tokenizer.h"

namespace tandem {

/// Any number of threads may encode.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;
  /// Appends the ids of a document. Throws std::invalid_argument (what is wrong).
  virtual void encode(std::string_view text, EncodeScratch& scratch,
                      std::vector<std::uint32_t>& ids) const = 0;
  /// The text of ids: special tokens and ids without a token are skipped, and bytes that form no
  /// character become U+FFFD.
  virtual std::string decode(std::span<const std::uint32_t> ids) const = 0;
  /// All ids are below this.
  virtual std::int64_t size() const = 0;
  /// The id of text that the vocabulary lacks.
  virtual std::optional<std::uint32_t> unknown() const { return std::nullopt; }
};

std::unique_ptr<const TextEncoder> byte_encoder();
/// Ids of the vocabulary's values, which are characters; 0 for all others.
std::unique_ptr<const TextEncoder> character_encoder(const Vocabulary& vocabulary);
/// Without special tokens.
std::unique_ptr<const TextEncoder> token_encoder(std::shared_ptr<const Tokenizer> tokenizer);

/// How often each character is in a text. Throws std::invalid_argument where the text is not UTF-8.
class CharacterCounts {
 public:
  CharacterCounts() : times_(0x110000) {}
  void take(std::string_view text);
  void add(const CharacterCounts& other);
  Vocabulary vocabulary() const;

 private:
  std::vector<std::int64_t> times_;
};

}  // namespace tandem
