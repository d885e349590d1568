// Tokens by their ids, and ids by tokens.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/formats/json_file.h"

namespace tandem {

class TokenTable {
 public:
  static constexpr std::uint64_t most_ids = std::uint64_t{1} << 22;

  TokenTable() = default;
  TokenTable(TokenTable&&) = default;
  TokenTable& operator=(TokenTable&&) = default;

  /// {"token": id}; throws Error{data} for ids that are too large or given twice.
  void read(const JsonItem& vocabulary);
  /// False where the token or the id is there already.
  bool add(std::string token, std::uint32_t id);

  std::optional<std::uint32_t> find(std::string_view token) const {
    const auto found = ids_.find(token);
    if (found == ids_.end()) return std::nullopt;
    return found->second;
  }
  /// Null where no token has this id.
  const std::string* token(std::uint32_t id) const {
    return id < tokens_.size() ? tokens_[id] : nullptr;
  }
  /// One more than the greatest id.
  std::uint32_t size() const { return static_cast<std::uint32_t>(tokens_.size()); }

 private:
  std::deque<std::string> texts_;  // which never move
  std::vector<const std::string*> tokens_;
  std::unordered_map<std::string_view, std::uint32_t> ids_;
};

}  // namespace tandem
