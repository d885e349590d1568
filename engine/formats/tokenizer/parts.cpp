#include "engine/formats/tokenizer/parts.h"

#include <stdexcept>

#include "engine/graph/text.h"

namespace tandem {
namespace {

template <class Part>
std::unique_ptr<const Part> read_part(const JsonItem& item, std::span<const PartKind<Part>> kinds,
                                      const std::string& what, const std::string& name) {
  std::vector<std::string> names;
  for (const PartKind<Part>& kind : kinds) {
    if (kind.name == name) return kind.read(item);
    names.emplace_back(kind.name);
  }
  throw Error(ErrorKind::data, Diagnostic{.message = what + " " + name + " is not supported",
                                          .file = item.file(),
                                          .path = item.keys(),
                                          .expected = "one of " + joined(names)});
}

std::string type_of_part(const JsonItem& item) { return item.at("type").text(); }

}  // namespace

std::unique_ptr<const Normalizer> read_normalizer(const JsonItem& item) {
  return read_part(item, all_normalizers(), "the normalizer", type_of_part(item));
}
std::unique_ptr<const PreTokenizer> read_pre_tokenizer(const JsonItem& item) {
  return read_part(item, all_pre_tokenizers(), "the pre-tokenizer", type_of_part(item));
}
std::unique_ptr<const TokenModel> read_token_model(const JsonItem& item) {
  std::string type;
  if (item.find("type")) {
    type = type_of_part(item);
  } else {
    type = item.find("merges")                     ? "BPE"
           : item.find("unk_id")                   ? "Unigram"
           : item.find("max_input_chars_per_word") ? "WordPiece"
                                                   : "WordLevel";
  }
  return read_part(item, all_token_models(), "the model", type);
}
std::unique_ptr<const PostProcessor> read_post_processor(const JsonItem& item) {
  return read_part(item, all_post_processors(), "the post-processor", type_of_part(item));
}
std::unique_ptr<const TokenDecoder> read_token_decoder(const JsonItem& item) {
  return read_part(item, all_token_decoders(), "the decoder", type_of_part(item));
}

std::optional<JsonItem> find_set(const JsonItem& item, std::string_view key) {
  std::optional<JsonItem> found = item.find(key);
  if (found && found->is_null()) found.reset();
  return found;
}

bool flag(const JsonItem& item, std::string_view key, bool fallback) {
  const std::optional<JsonItem> found = find_set(item, key);
  return found ? found->boolean() : fallback;
}

std::string text_at(const JsonItem& item, std::string_view key, std::string fallback) {
  const std::optional<JsonItem> found = find_set(item, key);
  return found ? found->any_text() : fallback;
}

std::string character_at(const JsonItem& item, std::string_view key, std::string_view fallback) {
  const std::string text = text_at(item, key, std::string(fallback));
  if (text.empty() || character_bytes(text[0]) != text.size())
    item.at(key).refuse("not a value that can be here", "one character");
  return text;
}

void check_size(const std::string& text) {
  constexpr std::size_t most = std::size_t{1} << 28;
  if (text.size() > most) throw std::invalid_argument("the tokenizer makes too long a text of it");
}

TextMatcher::TextMatcher(const JsonItem& item) {
  if (const std::optional<JsonItem> regex = item.find("Regex")) {
    try {
      pattern_ = std::make_shared<Pattern>(regex->any_text());
    } catch (const std::invalid_argument& problem) {
      regex->refuse(std::string("the expression is not supported: ") + problem.what());
    }
    return;
  }
  literal_ = item.at("String").any_text();
  if (literal_.empty()) item.at("String").refuse("an empty text matches everywhere");
}

void TextMatcher::for_all(std::string_view text,
                          const std::function<void(const TextRange&)>& f) const {
  if (pattern_)
    pattern_->for_all(text, f);
  else
    for_all_of(text, literal_, f);
}

void replace_matches(const TextMatcher& matcher, const std::string& content, std::string& text) {
  std::string made;
  std::size_t at = 0;
  matcher.for_all(text, [&](const TextRange& match) {
    made.append(text, at, match.begin - at);
    made += content;
    check_size(made);
    at = match.end;
  });
  if (at == 0) return;  // nothing matches
  made.append(text, at);
  text.swap(made);
}

}  // namespace tandem
