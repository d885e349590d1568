// What a trained language model writes after a prompt. Standard types only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tandem/tandem.h"

namespace tandem::api {

/// How a language model goes on with a text. `data`, `strict_words` and `on_progress` are not used.
struct GenerateOptions : TrainedOptions {
  std::vector<std::string> prompts;  // one text is written after each
  /// Prompts go to the model as they are. Else, where the run was trained on conversations, each is
  /// a message of the user in the run's template, and the model writes the answer.
  bool raw = false;
  std::int64_t max_tokens = 64;  // the longest text, in tokens
  /// 0: always the token with the greatest logit. Above: a token is drawn from softmax(logits /
  /// temperature). Unset: 1 where `top_k` or `top_p` is set, else 0.
  std::optional<double> temperature;
  std::int64_t top_k = 0;  // draw from that many tokens with the greatest logits; 0: from all
  double top_p = 1;        // draw from the likeliest tokens that have this probability together
  std::uint64_t seed = 1;  // the same numbers are drawn for the same seed
  std::vector<std::string> stop_texts;  // a text ends before the first of these
  std::string tokenizer;  // a tokenizer.json; "": that of the run, or the one next to the model
  /// Gets each text in pieces as it is written, in whole characters. `prompt`: index in `prompts`.
  std::function<void(std::size_t prompt, const std::string& piece)> on_text;
};
struct GeneratedText {
  std::string prompt, text;
  std::vector<std::int64_t> ids;  // tokens that the model wrote, with the one that ended the text
  /// "end": the model wrote a token that ends texts; "stop": a text of `stop_texts`; "length":
  /// `max_tokens`; "positions": the model has no further positions.
  std::string ended;
};
struct GenerateReport : Report {
  std::vector<GeneratedText> texts;  // one a prompt
};
/// Writes on after each prompt with a decoder, which takes token ids and gives logits of the next
/// token at each place. `run` as for `predict_run`; an ONNX file needs neither configuration nor
/// data. Works in one process. Throws Error{usage} where the model is no such decoder, where no
/// tokenizer is known, and for options out of range; Error{data} for prompts that the tokenizer
/// does not take; Error{diverged} where parameters or logits are not finite.
GenerateReport generate_text(const std::string& run, const GenerateOptions& options);

}  // namespace tandem::api
