// ChatML: <|im_start|>ROLE, a line end, the content, <|im_end|> and a line end for each message.
#include "engine/data/chat/chat_template.h"

namespace tandem::chat_templates {

ChatTemplate chatml() {
  return {.name = "chatml",
          .models = "Qwen, SmolLM2, Yi, Hermes",
          .tokens = {"<|im_start|>", "<|im_end|>"},
          .system = {.before = "<|im_start|>system\n", .behind = "<|im_end|>", .gap = "\n"},
          .user = {.before = "<|im_start|>user\n", .behind = "<|im_end|>", .gap = "\n"},
          .assistant = {.before = "<|im_start|>assistant\n", .behind = "<|im_end|>", .gap = "\n"}};
}

}  // namespace tandem::chat_templates
