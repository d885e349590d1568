// One score for each label of 0 or 1: binary_cross_entropy.
#include <fmt/format.h>

#include <algorithm>

#include "api/init/losses/loss_form.h"

namespace tandem::api::forms {
namespace {

/// One number a sample, or a mask of one channel.
bool is_one_score(const Shape& shape) {
  return squeezed(shape).empty() || (shape.size() >= 3 && shape.front() == 1);
}

/// Whether a tenth of the labels very likely holds both classes, which auc needs.
bool has_both(const Numbers& numbers) {
  const double ones = numbers.sum, zeros = static_cast<double>(numbers.count) - ones;
  return std::min(ones, zeros) >= 100;
}

std::optional<LossGuess> guess_binary(const LossCase& of) {
  if (squeezed(of.shape) != squeezed(of.labels.sample.shape) || !is_one_score(of.shape) ||
      of.labels.has_gaps() || of.op.ends_with("Softmax"))
    return std::nullopt;
  const std::vector<std::string> words = label_words(of, 2);
  const std::string list = classes_function(words);
  if (of.labels.is_text ? list.empty() : !of.labels.numbers.binary()) return std::nullopt;
  LossGuess loss;
  loss.kind = "binary_cross_entropy";
  loss.value_key = "logits";
  loss.value = of.op == "Sigmoid" ? of.before : of.output;
  loss.labels_key = "labels";
  loss.metrics = {"accuracy", "log_loss"};
  loss.certainty = 3;
  if (of.labels.is_text) {
    loss.as = {list, "float32"};
    loss.why =
        fmt::format("\"{}\" has one number for each label, and \"{}\" holds two words: 1 is \"{}\"",
                    of.output, of.labels.name, words[1]);
    if (!of.labels.is_label) loss.certainty = 2;  // it may be anything
  } else {
    loss.as = label_functions(of.labels, false);
    if (squeezed(of.shape).empty() && has_both(of.labels.numbers))
      loss.metrics.insert(loss.metrics.begin() + 1, "auc");
    loss.why = fmt::format("\"{}\" has one number for each label, and \"{}\" holds 0 and 1 alone",
                           of.output, of.labels.name);
  }
  if (of.op == "Sigmoid")
    loss.why += "; the model ends in a Sigmoid, which the loss applies itself: its input is named";
  return loss;
}

/// Of two words, one of which no list can hold.
std::string miss_of_two_words(const LossCase& of) {
  const bool are_two = of.labels.is_text && of.labels.texts == 2;
  const bool fit = squeezed(of.shape) == squeezed(of.labels.sample.shape) && is_one_score(of.shape);
  return are_two && fit ? unlisted_labels(of) : "";
}

}  // namespace

LossForm binary() {
  return {.name = "binary", .guess = guess_binary, .near_miss = miss_of_two_words};
}

}  // namespace tandem::api::forms
