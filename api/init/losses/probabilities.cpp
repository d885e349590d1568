// Labels of the output's shape that are only 0 and 1: one-hot classes or answers to several
// questions, which the values cannot distinguish.
#include <fmt/format.h>

#include "api/init/losses/loss_form.h"

namespace tandem::api::forms {
namespace {

std::optional<LossGuess> guess_probabilities(const LossCase& of) {
  const Shape output = squeezed(of.shape);
  if (output.empty() || output[0] < 2 || output != squeezed(of.labels.sample.shape) ||
      of.labels.is_text || of.labels.has_gaps() || !of.labels.numbers.binary())
    return std::nullopt;
  LossGuess loss;
  // One-hot labels have one 1 per position, whichever axis the classes are on.
  const auto one_for_each = [&](std::int64_t classes) {
    return of.labels.numbers.sum * static_cast<double>(classes) ==
           static_cast<double>(of.labels.numbers.count);
  };
  const bool may_be_one_hot = one_for_each(output.front()) || one_for_each(output.back());
  loss.value_key = "logits";
  loss.labels_key = "labels";
  loss.as = label_functions(of.labels, false);
  loss.certainty = 2;
  if (of.op == "Softmax" || of.op == "LogSoftmax" || of.op == "Sigmoid") {
    loss.kind = of.op == "Sigmoid" ? "binary_cross_entropy" : "softmax_cross_entropy";
    loss.value = of.before;
    loss.metrics = {"accuracy"};
    loss.why = fmt::format(
        "\"{}\" is the result of a {}, which the loss applies itself: its input "
        "is named; \"{}\" holds 0 and 1",
        of.output, of.op, of.labels.name);
    return loss;
  }
  loss.kind = may_be_one_hot ? "softmax_cross_entropy" : "binary_cross_entropy";
  loss.value = of.output;
  if (may_be_one_hot) {
    loss.doubt = fmt::format(
        "\"{}\" holds 0 and 1 in the shape of \"{}\", as many ones as {}: one-hot classes "
        "(softmax_cross_entropy), or a yes or no for each (binary_cross_entropy)?",
        of.labels.name, of.output, output.size() == 1 ? "samples" : "places");
    return loss;
  }
  loss.metrics = {"accuracy"};
  loss.why = fmt::format(
      "\"{}\" holds 0 and 1 in the shape of \"{}\", and not one 1 for each {}: a yes or no for "
      "each",
      of.labels.name, of.output, output.size() == 1 ? "sample" : "place");
  return loss;
}

}  // namespace

LossForm probabilities() { return {.name = "probabilities", .guess = guess_probabilities}; }

}  // namespace tandem::api::forms
