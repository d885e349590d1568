#include "engine/data/chat/chat_encoder.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace tandem {
namespace {

Diagnostic not_for_tokenizer(const std::invalid_argument& problem) {
  return {.message = "not a text for the tokenizer: " + std::string(problem.what())};
}

}  // namespace

std::vector<std::string> ChatEncoder::missing_tokens() const {
  std::vector<std::string> missing;
  EncodeScratch scratch;
  EncodedTokens encoded;
  for (const std::string& token : style_.tokens) {
    tokenizer_->encode(token, {.adds_special = false}, scratch, encoded);
    if (encoded.ids.size() != 1 || encoded.ids[0] == tokenizer_->unknown())
      missing.push_back(token);
  }
  return missing;
}

void ChatEncoder::add_system(Conversation& conversation) const {
  const bool has_system = !conversation.empty() && conversation.front().role == ChatRole::system;
  if (!system_.empty() && !has_system)
    conversation.insert(conversation.begin(), {ChatRole::system, system_});
}

std::optional<Diagnostic> ChatEncoder::encode_prompt(Conversation conversation, Scratch& scratch,
                                                     std::vector<std::uint32_t>& ids) const {
  if (auto problem = misfit_of_roles(style_, conversation)) return problem;
  add_system(conversation);
  EncodedTokens encoded;
  try {
    tokenizer_->encode(render_prompt(style_, conversation), {.adds_special = false}, scratch.tokens,
                       encoded);
  } catch (const std::invalid_argument& problem) {
    return not_for_tokenizer(problem);
  }
  ids = std::move(encoded.ids);
  return std::nullopt;
}

std::optional<Diagnostic> ChatEncoder::encode(Conversation conversation, Scratch& scratch,
                                              ChatTokens& to) const {
  if (auto problem = misfit_of_roles(style_, conversation)) return problem;
  add_system(conversation);
  render_chat(style_, conversation, scratch.text);
  scratch.marks.clear();
  for (const TextRange& answer : scratch.text.answers) {
    scratch.marks.push_back(answer.begin);
    scratch.marks.push_back(answer.end);
  }
  try {
    tokenizer_->encode_marked(scratch.text.text, scratch.marks, scratch.tokens, to.ids,
                              scratch.places);
  } catch (const std::invalid_argument& problem) {
    return not_for_tokenizer(problem);
  }
  to.answers.clear();
  for (std::size_t i = 0; i + 1 < scratch.places.size(); i += 2) {
    const TokenPlace &first = scratch.places[i], &last = scratch.places[i + 1];
    const std::size_t end = std::min(last.token + (last.is_border ? 0 : 1), to.ids.size());
    if (first.token < end) to.answers.push_back({first.token, end});
  }
  return std::nullopt;
}

}  // namespace tandem
