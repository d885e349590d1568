// Gemma 1 to 3: <start_of_turn>user and <start_of_turn>model; a system message is the beginning of
// the first message of the user.
#include "engine/data/chat/chat_template.h"

namespace tandem::chat_templates {

ChatTemplate gemma() {
  return {.name = "gemma",
          .models = "Gemma 1 to 3",
          .tokens = {"<bos>", "<start_of_turn>", "<end_of_turn>"},
          .begin = "<bos>",
          .system_place = SystemPlace::first_user,
          .user = {.before = "<start_of_turn>user\n",
                   .behind = "<end_of_turn>",
                   .gap = "\n",
                   .trims = true},
          .assistant = {.before = "<start_of_turn>model\n",
                        .behind = "<end_of_turn>",
                        .gap = "\n",
                        .trims = true},
          .alternates = true};
}

}  // namespace tandem::chat_templates
