// Mistral's form in which [INST] and [/INST] are tokens and contents begin with a space. A system
// message is written in front of the last user message.
#include "engine/data/chat/chat_template.h"

namespace tandem::chat_templates {

ChatTemplate mistral_v3() {
  return {.name = "mistral_v3",
          .models = "Mistral 7B Instruct 0.3, Mixtral 8x22B, Codestral",
          .tokens = {"<s>", "</s>", "[INST]", "[/INST]"},
          .begin = "<s>",
          .system_place = SystemPlace::last_user,
          .user = {.before = "[INST] ", .behind = "[/INST]"},
          .assistant = {.lead = " ", .behind = "</s>", .trims = true},
          .alternates = true};
}

}  // namespace tandem::chat_templates
