// Finds the chat template that a tokenizer's own files state, by the literals of its Jinja text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/data/chat/chat_template.h"
#include "engine/formats/tokenizer/tokenizer.h"

namespace tandem::api {

struct OwnTemplate {
  std::string file;                           // that states it; "": there is none
  const ChatTemplate* known = nullptr;        // the one that writes the same; null: none does
  std::optional<ChatTemplateConfig> pattern;  // for another one, where it can be read
  std::optional<std::string> begin;           // in place of the known one's
  std::string system;                         // the message that it adds where there is none
  std::vector<std::string> more;  // what it does that the known one or the pattern does not
  std::vector<std::string> less;  // what it leaves out that they write
  std::string shown;              // the beginning of its text, for messages
};
/// Looks into chat_template.jinja, chat_template.json and tokenizer_config.json next to a
/// tokenizer.json.
OwnTemplate own_template(const std::string& tokenizer_file);

/// The token with which texts end, by tokenizer_config.json, or by the name that is usual; "": none
/// was found.
std::string end_token(const std::string& tokenizer_file, const Tokenizer& tokenizer);

}  // namespace tandem::api
