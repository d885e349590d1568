// Phi-3: <|ROLE|>, a line end, the content, <|end|> and a line end for each message, and
// <|endoftext|> behind the last one.
#include "engine/data/chat/chat_template.h"

namespace tandem::chat_templates {

ChatTemplate phi3() {
  return {.name = "phi3",
          .models = "Phi-3, Phi-3.5",
          .tokens = {"<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|endoftext|>"},
          .end = "<|endoftext|>",
          .system = {.before = "<|system|>\n", .behind = "<|end|>", .gap = "\n"},
          .user = {.before = "<|user|>\n", .behind = "<|end|>", .gap = "\n"},
          .assistant = {.before = "<|assistant|>\n", .behind = "<|end|>", .gap = "\n"}};
}

}  // namespace tandem::chat_templates
