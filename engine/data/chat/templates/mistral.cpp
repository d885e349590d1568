// Mistral's first form: spaces around [INST] and before [/INST], </s> after an answer. A system
// message is written in front of the first user message.
#include "engine/data/chat/chat_template.h"

namespace tandem::chat_templates {

ChatTemplate mistral() {
  return {.name = "mistral",
          .models = "Mistral 7B Instruct 0.1 and 0.2, Mixtral 8x7B",
          .tokens = {"<s>", "</s>"},
          .begin = "<s>",
          .system_place = SystemPlace::first_user,
          .user = {.before = " [INST] ", .behind = " [/INST]"},
          .assistant = {.lead = " ", .behind = "</s>"},
          .alternates = true};
}

}  // namespace tandem::chat_templates
