// Numbers of the output's shape: mse.
#include <fmt/format.h>

#include "api/init/losses/loss_form.h"

namespace tandem::api::forms {
namespace {

/// A network starts with outputs near 0, and steps do not grow with the targets. Values that
/// float32 cannot hold cannot be repaired by normalization.
std::string note_of_scale(const ArrayFacts& labels) {
  if (const std::string beyond = beyond_float32(labels); !beyond.empty())
    return beyond +
           (labels.columns.empty()
                ? ": it becomes infinite"
                : ": training refuses its row, or leaves it out by data.on_bad = \"skip\"");
  constexpr double large = 10;
  const double mean = labels.numbers.mean(), deviation = labels.numbers.deviation();
  const double start = mean * mean + deviation * deviation;
  if (start < large * large || deviation == 0) return "";
  return fmt::format(
      "\"{}\" has mean {:.6g} and deviation {:.6g}: outputs begin near 0, where the loss is about "
      "{:.3g} (mean² + deviation²), and have far to go; with \"normalize({:.6g}, {:.6g})\" at the "
      "end of its `as` the loss begins near 1, and predictions are deviations from the mean",
      labels.name, mean, deviation, start, mean, deviation);
}

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
  loss.metrics = {"rmse"};
  if (numbers.deviation() > 0) loss.metrics.emplace_back("r2");  // undefined for equal targets
  loss.why = fmt::format("\"{}\" holds numbers ({:g} to {:g}) in the shape of \"{}\"",
                         of.labels.name, numbers.least, numbers.most, of.output);
  loss.note = note_of_scale(of.labels);
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
