// One score for each label of 0 or 1: binary_cross_entropy.
#include <fmt/format.h>

#include "api/init/losses/loss_form.h"

namespace tandem::api::forms {
namespace {

/// One number a sample, or a mask of one channel.
bool is_one_score(const Shape& shape) {
  return squeezed(shape).empty() || (shape.size() >= 3 && shape.front() == 1);
}

std::optional<LossGuess> guess_binary(const LossCase& of) {
  if (squeezed(of.shape) != squeezed(of.labels.sample.shape) || !is_one_score(of.shape) ||
      of.labels.has_gaps || of.op.ends_with("Softmax"))
    return std::nullopt;
  const std::string words = classes_function(of, 2);
  if (words.empty() && (of.labels.is_text || !of.labels.numbers.binary())) return std::nullopt;
  LossGuess loss;
  loss.kind = "binary_cross_entropy";
  loss.value_key = "logits";
  loss.value = of.op == "Sigmoid" ? of.before : of.output;
  loss.labels_key = "labels";
  loss.as = words.empty() ? label_functions(of.labels, false)
                          : std::vector<std::string>{words, "float32"};
  loss.metrics = {"accuracy", "log_loss"};
  loss.why =
      fmt::format("\"{}\" has one number for each label, and \"{}\" holds {} alone", of.output,
                  of.labels.name, words.empty() ? "0 and 1" : "two words, 0 and 1 as sorted");
  if (of.op == "Sigmoid")
    loss.why += "; the model ends in a Sigmoid, which the loss applies itself: its input is named";
  loss.certainty = 3;
  return loss;
}

}  // namespace

LossForm binary() { return {.name = "binary", .guess = guess_binary}; }

}  // namespace tandem::api::forms
