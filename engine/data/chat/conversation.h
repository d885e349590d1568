// A conversation as a line of JSON holds it: messages, or a prompt with its answer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

enum class ChatRole : std::uint8_t { system, user, assistant };
/// "system", "user" or "assistant".
std::string_view name_of(ChatRole role);
/// Whether a text is empty or white space.
bool is_blank(std::string_view text);

struct ChatMessage {
  ChatRole role = ChatRole::user;
  std::string content;
};
/// At least one message of the assistant has a content that is not blank.
using Conversation = std::vector<ChatMessage>;

/// Takes {"messages": [{"role": …, "content": …}, …]}, or {"prompt": …, "completion": …} with
/// "answer" or "response" in place of "completion", and perhaps "system". Other keys are skipped.
/// Throws Error{data} with the file, the line and the key.
Conversation read_conversation(const std::string& file, std::int64_t line, std::string_view text);

}  // namespace tandem
