// A trained decoder that is asked for the next token: one pass over the whole text each time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/generate/text_inputs.h"
#include "api/trained/trained_run.h"
#include "engine/train/evaluation/prediction.h"

namespace tandem::api {

/// How long texts become, prompts included.
struct TextLengths {
  std::int64_t longest_prompt = 0;  // tokens
  std::int64_t longest_text = 0;    // tokens that are fed: the last one of a text is not
};

/// The run with a batch of one and the length of texts bound. Places behind a text are filled up,
/// which a causal model does not see.
class TextModel {
 public:
  /// `tokens`: ids of the tokenizer. Throws Error{usage} where the model has no logits of tokens,
  /// for inputs that nothing fills, and for a prompt that is too long; Error{diverged} where
  /// parameters are not finite.
  TextModel(TrainedRun run, const TextLengths& lengths, std::int64_t tokens);

  TrainedModel& trained() { return *trained_; }
  /// Tokens that a text may have: fewer than were wanted where the model has no more positions.
  std::int64_t places() const { return length_; }
  std::int64_t vocabulary() const { return vocabulary_; }
  /// Logits of the token that follows `ids`, of which there are 1 to places(). Throws Error{data}
  /// for ids that the model has no row for.
  std::vector<float> next(std::span<const std::uint32_t> ids);
  /// Throws Error{usage} where the logits at a token depend on the tokens after it, as those of an
  /// encoder do. `ids` as above.
  void check_causal(std::span<const std::uint32_t> ids);

 private:
  /// Makes the model for texts of `length` tokens.
  void open(TrainedRun run, std::int64_t length, std::int64_t tokens);
  void choose_logits(std::int64_t tokens);
  void take_needed_inputs();
  std::int64_t known_positions();
  SampleRange samples(std::span<const std::uint32_t> ids, std::size_t real) const;
  std::vector<float> logits_at(std::size_t place, const SampleRange& samples);

  TextInputs inputs_;  // those that the logits depend on
  std::optional<TrainedModel> trained_;
  std::optional<Prediction> prediction_;
  std::string logits_;  // the name of the output
  std::int64_t length_ = 0, vocabulary_ = 0;
};

}  // namespace tandem::api
