// A chat template as a value: the texts that it puts around messages, and where a system message
// goes. templates/chatml.cpp is the shortest one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/data_config.h"
#include "engine/data/chat/conversation.h"
#include "engine/formats/tokenizer/pattern.h"
#include "engine/graph/error.h"

namespace tandem {

/// What is written around the content of a role's messages. Of an answer all is learned that a
/// model has to write: `lead`, the content, `behind`.
struct ChatTurn {
  std::string before = {}, lead = {}, behind = {};
  std::string gap = {};  // between this message and the next one
  bool trims = false;    // leaves out white space around the content
};

/// What becomes of a system message.
enum class SystemPlace : std::uint8_t {
  own_turn,    // a message like the others, anywhere
  first_user,  // two line ends join it with the first message of the user, in front of that
  last_user,   // the same with the last one
  refused,
};

struct ChatTemplate {
  std::string name;
  std::string models;               // that use it
  std::vector<std::string> tokens;  // texts that the tokenizer has to have as tokens
  std::string begin, end;           // before the first message, behind the last one
  SystemPlace system_place = SystemPlace::own_turn;
  ChatTurn system, user, assistant;
  bool alternates = false;  // user and assistant in turn, after a system message
};

/// In the order of the list templates/all_templates.inl.
std::span<const ChatTemplate> all_chat_templates();
/// Null where there is none of this name.
const ChatTemplate* find_chat_template(std::string_view name);
/// "chatml|llama3|…"
const std::string& chat_template_words();
/// The template that a configuration names, or its pattern, with its own beginning.
ChatTemplate chat_template_of(const ChatFiles& config);

/// The mark in a pattern that stands for the content of a message.
inline constexpr std::string_view content_mark = "{content}";

struct RenderedChat {
  std::string text;
  std::vector<TextRange> answers;  // the bytes that are learned, ascending
};
/// What the template does not take about the roles of a conversation, without its place.
std::optional<Diagnostic> misfit_of_roles(const ChatTemplate& style, const Conversation& messages);
/// A conversation that fits as one text.
void render_chat(const ChatTemplate& style, const Conversation& messages, RenderedChat& to);
/// A conversation that an answer is to follow: its text up to the place where the answer begins.
std::string render_prompt(const ChatTemplate& style, const Conversation& messages);

}  // namespace tandem
