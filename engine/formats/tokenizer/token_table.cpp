#include "engine/formats/tokenizer/token_table.h"

namespace tandem {

void TokenTable::read(const JsonItem& vocabulary) {
  for (const auto& [token, id] : vocabulary.object()) {
    const auto number = static_cast<std::uint32_t>(id.natural(0, most_ids - 1));
    if (!add(token, number)) id.refuse("two tokens have this id");
  }
  if (tokens_.empty()) vocabulary.refuse("the vocabulary is empty");
}

bool TokenTable::add(std::string token, std::uint32_t id) {
  if (id < tokens_.size() && tokens_[id] != nullptr) return false;
  if (ids_.contains(token)) return false;
  if (id >= tokens_.size()) tokens_.resize(std::size_t{id} + 1);
  texts_.push_back(std::move(token));
  tokens_[id] = &texts_.back();
  ids_.emplace(texts_.back(), id);
  return true;
}

}  // namespace tandem
