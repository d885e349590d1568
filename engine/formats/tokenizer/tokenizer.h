// A tokenizer as Hugging Face's tokenizer.json says it: text to ids as their library makes them,
// and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/formats/tokenizer/added_tokens.h"

namespace tandem {

struct EncodedTokens {
  std::vector<std::uint32_t> ids;
  std::vector<std::uint8_t> types;  // segment types, as in the template
  std::vector<std::uint8_t> mask;   // 0 where the length is filled up
  std::int64_t cut = 0;             // tokens that the length left no room for
};

/// A place in a text, as one among its tokens.
struct TokenPlace {
  std::size_t token = 0;  // the first one that begins at the place or reaches beyond it
  bool is_border = true;  // it begins there; false: it has text on both sides
};

struct EncodeOptions {
  bool adds_special = true;  // adds what the post-processor puts around
  /// Longer ones are cut, specials counted, shorter ones filled up; 0: as long as they are.
  std::int64_t length = 0;
  std::int64_t pad = -1;  // the id that fills up; -1: that of the file
};

/// Ids of words that came before, and other memory, of one thread.
class EncodeScratch {
 private:
  friend class Tokenizer;
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  const void* owner_ = nullptr;                                              // whose ids they are
  std::unordered_map<std::string, TextRange, Hash, std::equal_to<>> known_;  // in known_ids_
  std::vector<std::uint32_t> known_ids_;
  ModelScratch model_;
  Words words_;
  std::vector<AddedTokens::Part> parts_, inner_;
  std::vector<std::uint32_t> before_;
};

/// Any number of threads may encode.
class Tokenizer {
 public:
  /// Throws Error{usage} where this build lacks PCRE2 or utf8proc, Error{data} with the keys for
  /// what is broken or not supported, Error{runtime} where the file cannot be read.
  static std::shared_ptr<const Tokenizer> read(const std::string& path);
  /// Makes a tokenizer from the text of a file; messages call it `name`.
  static std::shared_ptr<const Tokenizer> parse(const std::string& name, std::string_view json);

  /// Replaces what is in `to`. Throws std::invalid_argument (what is wrong) for text that is no
  /// UTF-8 or in no token of a vocabulary without an unknown one.
  void encode(std::string_view text, const EncodeOptions& options, EncodeScratch& scratch,
              EncodedTokens& to) const;
  /// The ids of a text without what is put around, and where `marks` are among them: bytes of the
  /// text at which characters begin, or its end, ascending. Throws as above.
  void encode_marked(std::string_view text, std::span<const std::size_t> marks,
                     EncodeScratch& scratch, std::vector<std::uint32_t>& ids,
                     std::vector<TokenPlace>& places) const;
  /// As HF's `decode`. Ids without a token are skipped.
  std::string decode(std::span<const std::uint32_t> ids, bool skips_special = true) const;

  /// One more than the greatest id.
  std::int64_t size() const { return size_; }
  std::uint32_t pad() const { return pad_; }
  /// How many tokens the post-processor puts around.
  std::int64_t specials() const { return static_cast<std::int64_t>(frame_.size()); }
  /// The tokens that the post-processor puts in front of a text.
  std::vector<std::uint32_t> in_front() const;
  /// Whether an id is one of the added tokens: special ones, and words added to the vocabulary.
  bool is_added(std::uint32_t id) const { return added_.token(id) != nullptr; }
  /// Null where there is none.
  const std::string* token(std::uint32_t id) const;
  std::optional<std::uint32_t> find(std::string_view token) const;
  /// The token for text that is in no other one.
  std::optional<std::uint32_t> unknown() const;
  /// The hash of the file.
  const std::string& sha256() const { return sha256_; }

 private:
  Tokenizer() = default;
  void take(const JsonItem& root);
  void take_padding(const JsonItem& root);
  void find_parts(std::string_view text, EncodeScratch& scratch) const;
  void encode_text(std::string_view text, bool at_start, EncodeScratch& scratch,
                   std::vector<std::uint32_t>& ids) const;
  void encode_words(EncodeScratch& scratch, std::vector<std::uint32_t>& ids) const;

  std::unique_ptr<const Normalizer> normalizer_;
  std::unique_ptr<const PreTokenizer> pre_tokenizer_;
  std::unique_ptr<const TokenModel> model_;
  std::unique_ptr<const TokenDecoder> decoder_;
  AddedTokens added_;
  TokenFrame frame_;
  std::int64_t size_ = 0;
  std::uint32_t pad_ = 0;
  std::uint8_t pad_type_ = 0;
  bool pads_left_ = false, cuts_left_ = false;
  std::string sha256_;
};

}  // namespace tandem
