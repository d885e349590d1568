// Mistral's form for its Tekken tokenizers, without spaces. A system message is written in front of
// the last user message.
#include "engine/data/chat/chat_template.h"

namespace tandem::chat_templates {

ChatTemplate mistral_tekken() {
  return {.name = "mistral_tekken",
          .models = "Mistral Nemo, Ministral, Pixtral",
          .tokens = {"<s>", "</s>", "[INST]", "[/INST]"},
          .begin = "<s>",
          .system_place = SystemPlace::last_user,
          .user = {.before = "[INST]", .behind = "[/INST]"},
          .assistant = {.behind = "</s>"},
          .alternates = true};
}

}  // namespace tandem::chat_templates
