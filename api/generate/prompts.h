// Turns prompts into tokens as the model was trained to see them, and says what ends its texts.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/program/generate.h"
#include "api/trained/trained_run.h"
#include "engine/data/tokens/text_encoder.h"

namespace tandem::api {

struct Prompts {
  std::shared_ptr<const TextEncoder> encoder;   // for the text that is written
  std::vector<std::vector<std::uint32_t>> ids;  // one list a prompt, none empty
  std::set<std::int64_t> ends;                  // tokens that end a text
  std::vector<std::string> stops;               // texts that end a text
  std::string tokenizer;                        // the file that made the ids, for messages
  bool is_chat = false;                         // prompts are messages in the run's template
};

/// The tokenizer is `options.tokenizer`, else the run's own, else the one next to the model. What
/// ends a text: what the template writes behind an answer, the `eos_token_id` of config.json or
/// generation_config.json next to the model, and `data.document_end`; if there is none of these,
/// added tokens that usually end texts. Throws Error{usage} where no tokenizer is known,
/// Error{data} for prompts without tokens and for texts that the tokenizer does not take.
Prompts read_prompts(const TrainedRun& run, const GenerateOptions& options);

}  // namespace tandem::api
