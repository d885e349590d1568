// Numbers of the output's shape: mse.
#include <fmt/format.h>

#include "api/init/losses/loss_form.h"

namespace tandem::api::forms {
namespace {

std::optional<LossGuess> guess_regression(const LossCase& of) {
  const Numbers& numbers = of.labels.numbers;
  if (squeezed(of.shape) != squeezed(of.labels.sample.shape) || of.labels.is_text ||
      of.labels.has_gaps() || !numbers.finite || numbers.count == 0 || numbers.binary() ||
      of.op.ends_with("Softmax") || of.op == "Sigmoid")
    return std::nullopt;
  LossGuess loss;
  loss.kind = "mse";
  loss.value_key = "predictions";
  loss.value = of.output;
  loss.labels_key = "targets";
  loss.as = label_functions(of.labels, false);
  loss.metrics = {"mse"};
  loss.why = fmt::format("\"{}\" holds numbers ({:g} to {:g}) in the shape of \"{}\"",
                         of.labels.name, numbers.least, numbers.most, of.output);
  if (!numbers.many && numbers.distinct_within({-1, 1})) {
    loss.doubt =
        fmt::format("\"{}\" holds -1 and 1: classes (hinge), or numbers (mse)?", of.labels.name);
  }
  loss.certainty = 2;
  return loss;
}

}  // namespace

LossForm regression() { return {.name = "regression", .guess = guess_regression}; }

}  // namespace tandem::api::forms
