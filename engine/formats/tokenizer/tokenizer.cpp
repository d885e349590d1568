#include "engine/formats/tokenizer/tokenizer.h"

#include <algorithm>
#include <stdexcept>

#include "engine/formats/files.h"
#include "engine/formats/sha256.h"
#include "engine/formats/tokenizer/unicode.h"

namespace tandem {
namespace {

constexpr JsonLimits tokenizer_limits{
    .bytes = std::uint64_t{256} << 20, .values = std::size_t{1} << 23, .depth = 16};
// Words that are longer seldom come twice.
constexpr std::size_t longest_known = 64, most_known = std::size_t{1} << 16,
                      most_known_ids = std::size_t{1} << 20;

void check_build(const std::string& file) {
  for (const TextProblem& problem : {unicode_problem(), pattern_problem()}) {
    if (*problem.what == '\0') continue;
    throw Error(ErrorKind::usage,
                Diagnostic{.message = problem.what, .file = file, .fix = problem.fix});
  }
}

}  // namespace

std::shared_ptr<const Tokenizer> Tokenizer::read(const std::string& path) {
  return parse(path, read_file(path, tokenizer_limits.bytes));
}

std::shared_ptr<const Tokenizer> Tokenizer::parse(const std::string& name, std::string_view json) {
  check_build(name);
  const std::shared_ptr<Tokenizer> tokenizer(new Tokenizer());
  const JsonFile file(JsonSource{.file = name}, json, tokenizer_limits);
  tokenizer->take(file.root());
  tokenizer->sha256_ = tandem::sha256(json.data(), json.size());
  return tokenizer;
}

void Tokenizer::take(const JsonItem& root) {
  if (const auto item = find_set(root, "normalizer")) normalizer_ = read_normalizer(*item);
  if (const auto item = find_set(root, "pre_tokenizer")) pre_tokenizer_ = read_pre_tokenizer(*item);
  model_ = read_token_model(root.at("model"));
  if (const auto item = find_set(root, "added_tokens"))
    added_.read(*item, model_->tokens(), normalizer_.get());
  size_ = std::max(model_->tokens().size(), added_.size());
  if (const auto item = find_set(root, "post_processor")) {
    try {
      read_post_processor(*item)->add(frame_);
    } catch (const std::invalid_argument& problem) {
      item->refuse(problem.what());
    }
    for (const auto* tokens : {&frame_.before, &frame_.behind}) {
      for (const TokenFrame::Token& special : *tokens) {
        if (token(special.id) == nullptr)
          item->refuse("the id " + std::to_string(special.id) + " is not in the vocabulary");
      }
    }
  }
  if (const auto item = find_set(root, "decoder")) decoder_ = read_token_decoder(*item);
  take_padding(root);
}

void Tokenizer::take_padding(const JsonItem& root) {
  const auto is_left = [](const JsonItem& item) {
    const std::string direction = text_at(item, "direction", "Right");
    if (direction != "Left" && direction != "Right")
      item.at("direction").refuse("not a value that can be here", "Left or Right");
    return direction == "Left";
  };
  if (const auto item = find_set(root, "truncation")) cuts_left_ = is_left(*item);
  if (const auto item = find_set(root, "padding")) {
    pads_left_ = is_left(*item);
    pad_ = static_cast<std::uint32_t>(item->at("pad_id").natural(0, TokenTable::most_ids - 1));
    pad_type_ = static_cast<std::uint8_t>(item->at("pad_type_id").natural(0, 255));
    return;
  }
  for (const char* name : {"[PAD]", "<pad>", "<|pad|>", "<|endoftext|>"}) {
    if (const auto id = find(name)) {
      pad_ = *id;
      return;
    }
  }
}

const std::string* Tokenizer::token(std::uint32_t id) const {
  const std::string* added = added_.token(id);
  return added != nullptr ? added : model_->tokens().token(id);
}

std::vector<std::uint32_t> Tokenizer::in_front() const {
  std::vector<std::uint32_t> ids;
  for (const TokenFrame::Token& special : frame_.before) ids.push_back(special.id);
  return ids;
}

std::optional<std::uint32_t> Tokenizer::unknown() const { return model_->unknown(); }

std::optional<std::uint32_t> Tokenizer::find(std::string_view token) const {
  const auto added = added_.find_token(token);
  return added ? added : model_->tokens().find(token);
}

void Tokenizer::encode_words(EncodeScratch& scratch, std::vector<std::uint32_t>& ids) const {
  if (pre_tokenizer_) pre_tokenizer_->split(scratch.words_);
  for (const TextRange& range : scratch.words_.ranges) {
    const std::string_view word = scratch.words_.word(range);
    const bool may_be_known = word.size() <= longest_known;
    if (may_be_known) {
      if (const auto found = scratch.known_.find(word); found != scratch.known_.end()) {
        const auto first = scratch.known_ids_.begin();
        ids.insert(ids.end(), first + static_cast<std::ptrdiff_t>(found->second.begin),
                   first + static_cast<std::ptrdiff_t>(found->second.end));
        continue;
      }
    }
    const std::size_t before = ids.size();
    model_->encode(word, ids, scratch.model_);
    if (!may_be_known) continue;
    if (scratch.known_.size() >= most_known || scratch.known_ids_.size() >= most_known_ids) {
      scratch.known_.clear();
      scratch.known_ids_.clear();
    }
    const std::size_t begin = scratch.known_ids_.size();
    scratch.known_ids_.insert(scratch.known_ids_.end(),
                              ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end());
    scratch.known_.emplace(word, TextRange{begin, scratch.known_ids_.size()});
  }
}

/// Text between tokens that are looked for as it is.
void Tokenizer::encode_text(std::string_view text, bool at_start, EncodeScratch& scratch,
                            std::vector<std::uint32_t>& ids) const {
  std::string normal(text);
  bool from_start = at_start;
  if (normalizer_) normalizer_->normalize(normal, from_start);
  scratch.inner_.clear();
  added_.find(normal, true, scratch.inner_);
  for (const AddedTokens::Part& part : scratch.inner_) {
    if (part.is_token()) {
      ids.push_back(part.id);
      continue;
    }
    Words& words = scratch.words_;
    words.text.assign(normal, part.range.begin, part.range.end - part.range.begin);
    words.ranges.assign(1, {0, words.text.size()});
    words.from_start = from_start && part.range.begin == 0;
    encode_words(scratch, ids);
  }
}

/// Cuts the text into its parts.
void Tokenizer::find_parts(std::string_view text, EncodeScratch& scratch) const {
  if (const std::size_t at = invalid_utf8(text); at != std::string_view::npos)
    throw std::invalid_argument("the text is not UTF-8 at its byte " + std::to_string(at));
  if (scratch.owner_ != this) {
    scratch.known_.clear();
    scratch.known_ids_.clear();
    scratch.owner_ = this;
  }
  scratch.parts_.clear();
  added_.find(text, false, scratch.parts_);
}

void Tokenizer::encode_marked(std::string_view text, std::span<const std::size_t> marks,
                              EncodeScratch& scratch, std::vector<std::uint32_t>& ids,
                              std::vector<TokenPlace>& places) const {
  find_parts(text, scratch);
  ids.clear();
  places.clear();
  auto mark = marks.begin();
  for (const AddedTokens::Part& part : scratch.parts_) {
    const std::size_t first = ids.size();
    const std::string_view own = text.substr(part.range.begin, part.range.end - part.range.begin);
    for (; mark != marks.end() && *mark <= part.range.begin; ++mark) places.push_back({first});
    if (part.is_token())
      ids.push_back(part.id);
    else
      encode_text(own, part.range.begin == 0, scratch, ids);
    for (; mark != marks.end() && *mark < part.range.end; ++mark) {
      if (part.is_token()) {
        places.push_back({first, false});
        continue;
      }
      // Tokens up to the mark are those that the text before it has by itself, too.
      std::vector<std::uint32_t>& before = scratch.before_;
      before.clear();
      encode_text(own.substr(0, *mark - part.range.begin), part.range.begin == 0, scratch, before);
      const auto alike = std::mismatch(before.begin(), before.end(),
                                       ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
      places.push_back(
          {static_cast<std::size_t>(alike.second - ids.begin()), alike.first == before.end()});
    }
  }
  for (; mark != marks.end(); ++mark) places.push_back({ids.size()});
}

void Tokenizer::encode(std::string_view text, const EncodeOptions& options, EncodeScratch& scratch,
                       EncodedTokens& to) const {
  find_parts(text, scratch);
  std::vector<std::uint32_t>& ids = to.ids;
  ids.clear();
  for (const AddedTokens::Part& part : scratch.parts_) {
    const std::string_view own = text.substr(part.range.begin, part.range.end - part.range.begin);
    if (part.is_token())
      ids.push_back(part.id);
    else
      encode_text(own, part.range.begin == 0, scratch, ids);
  }

  const TokenFrame none;
  const TokenFrame& frame = options.adds_special ? frame_ : none;
  const auto length = static_cast<std::size_t>(options.length);
  to.cut = 0;
  if (length > 0 && ids.size() + frame.size() > length) {
    if (frame.size() >= length)
      throw std::invalid_argument("the length leaves no room for tokens of the text");
    const std::size_t cut = ids.size() + frame.size() - length;
    to.cut = static_cast<std::int64_t>(cut);
    if (cuts_left_)
      ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(cut));
    else
      ids.resize(ids.size() - cut);
  }
  to.types.assign(ids.size(), frame.type);
  const auto put = [&](const std::vector<TokenFrame::Token>& tokens, bool behind) {
    std::size_t at = behind ? ids.size() : 0;
    for (const TokenFrame::Token& special : tokens) {
      ids.insert(ids.begin() + static_cast<std::ptrdiff_t>(at), special.id);
      to.types.insert(to.types.begin() + static_cast<std::ptrdiff_t>(at), special.type);
      ++at;
    }
  };
  put(frame.before, false);
  put(frame.behind, true);
  to.mask.assign(ids.size(), 1);
  if (ids.size() >= length) return;
  const std::size_t fill = length - ids.size();
  const std::uint32_t pad = options.pad >= 0 ? static_cast<std::uint32_t>(options.pad) : pad_;
  const auto fill_up = [&](auto& values, auto value) {
    values.insert(pads_left_ ? values.begin() : values.end(), fill, value);
  };
  fill_up(ids, pad);
  fill_up(to.types, pad_type_);
  fill_up(to.mask, std::uint8_t{0});
}

std::string Tokenizer::decode(std::span<const std::uint32_t> ids, bool skips_special) const {
  std::vector<std::string> tokens;
  for (const std::uint32_t id : ids) {
    const std::string* text = token(id);
    if (text == nullptr || (skips_special && added_.is_special(id))) continue;
    tokens.push_back(*text);
  }
  const bool has_decoder = decoder_ != nullptr;
  if (has_decoder) decoder_->decode(tokens);
  std::string all;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && !has_decoder) all += ' ';
    all += tokens[i];
  }
  return all;
}

}  // namespace tandem
