// Turns tokens into text piece by piece, as they are made: whole characters, up to a text that
// ends it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/tokens/text_encoder.h"

namespace tandem::api {

class WrittenText {
 public:
  /// `prompt`: the tokens before the text, which decide about a space in front of it. The text ends
  /// before the first of `stops`, none of which is empty.
  WrittenText(const TextEncoder& encoder, std::vector<std::uint32_t> prompt,
              std::vector<std::string> stops);

  /// What the token adds to the text. It is held back while a character is incomplete, or while it
  /// may be the beginning of a text that ends the stream.
  std::string add(std::uint32_t id);
  /// What was held back. Call it once, after the last token.
  std::string finish();
  /// Whether one of the texts was found; later tokens add nothing.
  bool is_stopped() const { return is_stopped_; }
  /// All pieces so far.
  const std::string& text() const { return text_; }

 private:
  std::string decoded(bool is_last);
  std::string released(bool is_last);

  const TextEncoder& encoder_;
  std::vector<std::string> stops_;
  std::vector<std::uint32_t> ids_;
  std::size_t known_ = 0, next_ = 0;  // tokens from known_ to next_ are the context of later ones
  std::string held_;                  // decoded, but not given yet
  std::string text_;
  bool is_stopped_ = false;
};

}  // namespace tandem::api
