// The ids of the tokens of single bytes, "<0x00>" to "<0xFF>", used for text that is in no other
// token.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "engine/formats/tokenizer/byte_letters.h"
#include "engine/formats/tokenizer/token_table.h"

namespace tandem {

class ByteIds {
 public:
  ByteIds() = default;
  explicit ByteIds(const TokenTable& tokens) {
    for (std::size_t byte = 0; byte < ids_.size(); ++byte)
      ids_[byte] = tokens.find(byte_token(static_cast<unsigned char>(byte)));
  }
  /// Appends an id for each byte; false, and nothing, where one has none.
  bool append(std::string_view bytes, std::vector<std::uint32_t>& to) const {
    const std::size_t before = to.size();
    for (const char c : bytes) {
      const auto& id = ids_[static_cast<unsigned char>(c)];
      if (!id) {
        to.resize(before);
        return false;
      }
      to.push_back(*id);
    }
    return true;
  }

 private:
  std::array<std::optional<std::uint32_t>, 256> ids_;
};

}  // namespace tandem
