#include "engine/formats/tokenizer/added_tokens.h"

#include <algorithm>
#include <stdexcept>

#include "engine/formats/tokenizer/unicode.h"

namespace tandem {
namespace {

std::size_t space_behind(std::string_view text, std::size_t at) {
  for (std::size_t next = at; next < text.size();) {
    if (!is_white_space(next_character(text, next))) break;
    at = next;
  }
  return at;
}

std::size_t space_before(std::string_view text, std::size_t at, std::size_t least) {
  while (at > least) {
    std::size_t before = at - 1;
    while (before > least && (static_cast<unsigned char>(text[before]) & 0xc0) == 0x80) --before;
    std::size_t end = before;
    if (!is_white_space(next_character(text, end))) break;
    at = before;
  }
  return at;
}

bool is_inside_word(std::string_view text, const TextRange& range) {
  std::size_t behind = range.end;
  return (range.begin > 0 && is_word_character(last_character(text.substr(0, range.begin)))) ||
         (range.end < text.size() && is_word_character(next_character(text, behind)));
}

}  // namespace

void AddedTokens::read(const JsonItem& list, const TokenTable& vocabulary,
                       const Normalizer* normalizer) {
  const std::vector<JsonItem> all = list.list();
  if (all.size() > most_tokens)
    list.refuse("too many added tokens", "at most " + std::to_string(most_tokens));
  for (const JsonItem& item : all) {
    const std::string content = item.at("content").any_text();
    if (content.empty()) item.refuse("a token without a text");
    const auto id = static_cast<std::uint32_t>(item.at("id").natural(0, TokenTable::most_ids - 1));
    const auto known = vocabulary.find(content);
    const std::string* other = vocabulary.token(id);
    if ((known && *known != id) || (other != nullptr && *other != content))
      item.refuse("the vocabulary has another token of this id, or this token with another id");
    if (!table_.add(content, id)) item.refuse("two added tokens are alike");
    const bool is_special = flag(item, "special", false);
    if (is_special) specials_.insert(id);
    settings_.push_back({id, flag(item, "single_word", false), flag(item, "lstrip", false),
                         flag(item, "rstrip", false)});
    const auto number = static_cast<std::uint32_t>(settings_.size() - 1);
    const auto add = [&](ByteTrie& trie, const std::string& text) {
      if (!trie.has_room(text)) {
        item.refuse("the texts of added tokens are too long",
                    "at most " + std::to_string(ByteTrie::most_bytes) + " bytes together");
      }
      trie.add(text, number);
    };
    if (!flag(item, "normalized", !is_special)) {
      add(raw_, content);
      any_raw_ = true;
      continue;
    }
    std::string text = content;
    bool from_start = true;
    try {
      if (normalizer != nullptr) normalizer->normalize(text, from_start);
    } catch (const std::invalid_argument& problem) {
      item.refuse(problem.what());
    }
    if (text.empty()) continue;  // no normalized text has it
    add(normalized_, text);
    any_normalized_ = true;
  }
}

void AddedTokens::find(std::string_view text, bool normalized, std::vector<Part>& parts) const {
  const ByteTrie& trie = normalized ? normalized_ : raw_;
  std::size_t taken = 0;  // up to here
  for (std::size_t at = 0; any(normalized) && at < text.size();) {
    if (!trie.may_start(text[at])) {
      ++at;
      continue;
    }
    TextRange found{at, at};
    std::uint32_t number = NumberTable::none;
    trie.for_beginnings(text.substr(at), [&](std::size_t bytes, std::uint32_t of) {
      found.end = at + bytes;  // the longest one
      number = of;
    });
    if (number == NumberTable::none) {
      ++at;
      continue;
    }
    at = found.end;
    const Settings& token = settings_[number];
    if (token.single_word && is_inside_word(text, found)) continue;
    if (token.left) found.begin = space_before(text, found.begin, taken);
    if (token.right) found.end = space_behind(text, found.end);
    if (found.begin > taken) parts.push_back({{taken, found.begin}});
    parts.push_back({found, token.id});
    taken = found.end;
    at = std::max(at, taken);
  }
  if (taken < text.size()) parts.push_back({{taken, text.size()}});
}

}  // namespace tandem
