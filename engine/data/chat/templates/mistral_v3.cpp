// Mistral's form with [INST] and [/INST] as tokens and spaces before contents; a system message is
// the beginning of the last message of the user.
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
