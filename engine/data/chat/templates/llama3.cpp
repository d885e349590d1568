// Llama 3: a header with the role, two line ends, the content and <|eot_id|> for each message.
#include "engine/data/chat/chat_template.h"

namespace tandem::chat_templates {
namespace {

ChatTurn llama3_turn(const std::string& role) {
  return {.before = "<|start_header_id|>" + role + "<|end_header_id|>\n\n",
          .behind = "<|eot_id|>",
          .trims = true};
}

}  // namespace

ChatTemplate llama3() {
  return {.name = "llama3",
          .models = "Llama 3 to 3.3",
          .tokens = {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
          .begin = "<|begin_of_text|>",
          .system = llama3_turn("system"),
          .user = llama3_turn("user"),
          .assistant = llama3_turn("assistant")};
}

}  // namespace tandem::chat_templates
