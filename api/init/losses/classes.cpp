// Class numbers against scores of every class: softmax_cross_entropy, or nll of log-probabilities.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/init/losses/loss_form.h"

namespace tandem::api::forms {
namespace {

/// How many classes the output scores where labels of this shape go with it; 0: they do not.
std::int64_t classes(const Shape& output, Shape labels) {
  if (output.empty()) return 0;
  if (labels.size() == output.size() && labels.back() == 1) labels.pop_back();
  if (labels.size() + 1 != output.size()) return 0;
  const bool last = std::equal(labels.begin(), labels.end(), output.begin());
  const bool first = std::equal(labels.begin(), labels.end(), output.begin() + 1);
  const std::int64_t count = last ? output.back() : first ? output.front() : 0;
  return count >= 2 ? count : 0;
}

/// The one value beside the classes, where it is one that stands for "no label": PyTorch's -100,
/// or 255 of masks.
std::string ignored(const Numbers& numbers, std::int64_t classes) {
  if (numbers.many) return "";
  std::set<double> others;
  for (const double x : numbers.distinct) {
    if (x < 0 || x >= static_cast<double>(classes)) others.insert(x);
  }
  if (others == std::set<double>{-100}) return "-100";
  if (others == std::set<double>{-1}) return "-1";
  if (others == std::set<double>{255}) return "255";
  return "";
}

std::optional<LossGuess> guess_classes(const LossCase& of) {
  const std::int64_t count = classes(of.shape, of.labels.sample.shape);
  const Numbers& numbers = of.labels.numbers;
  if (count == 0 || of.labels.has_gaps || of.op == "Sigmoid") return std::nullopt;
  const std::string words = classes_function(of, count);
  if (words.empty() && (of.labels.is_text || !numbers.finite || !numbers.whole))
    return std::nullopt;
  const bool in_range =
      !words.empty() || (numbers.least >= 0 && numbers.most < static_cast<double>(count));
  const std::string ignore = in_range ? "" : ignored(numbers, count);
  if (!in_range && ignore.empty()) return std::nullopt;
  LossGuess loss;
  const bool is_log = of.op == "LogSoftmax";
  loss.kind = is_log ? "nll" : "softmax_cross_entropy";
  loss.value_key = is_log ? "log_probabilities" : "logits";
  loss.value = of.op == "Softmax" ? of.before : of.output;
  loss.labels_key = "labels";
  loss.as = words.empty() ? label_functions(of.labels, true) : std::vector<std::string>{words};
  loss.metrics = {"accuracy"};
  loss.why = fmt::format(
      "\"{}\" scores {} classes for each label; \"{}\" holds whole numbers from {:g} to {:g}",
      of.output, count, of.labels.name, numbers.least, numbers.most);
  if (!words.empty()) {
    loss.why = fmt::format(
        "\"{}\" scores {} classes; \"{}\" holds as many words, numbered from 0 in this order",
        of.output, count, of.labels.name);
  }
  if (!ignore.empty()) {
    loss.options = ", ignore_index = " + ignore;
    loss.why += ", where " + ignore + " is no class and does not count";
  }
  if (of.op == "Softmax")
    loss.why += "; the model ends in a Softmax, which the loss applies itself: its input is named";
  // Labels that use the last class go with this output more surely than those that do not.
  const bool all_used = !words.empty() || numbers.most == static_cast<double>(count - 1);
  loss.certainty = in_range && all_used ? 3 : 2;
  return loss;
}

std::string near_miss(const LossCase& of) {
  const std::int64_t count = classes(of.shape, of.labels.sample.shape);
  if (count == 0) return "";
  const Numbers& numbers = of.labels.numbers;
  if (of.labels.is_text) {
    return fmt::format(
        "\"{}\" holds {}, \"{}\" has {} classes: classes('a', 'b', …) in `as` lists their words",
        of.labels.name,
        of.labels.many_words ? "text" : fmt::format("{} words", of.labels.words.size()), of.output,
        count);
  }
  if (of.labels.has_gaps) return fmt::format("\"{}\" has empty fields", of.labels.name);
  if (!numbers.whole || !numbers.finite) return "";
  if (numbers.least == 1 && numbers.most == static_cast<double>(count)) {
    return fmt::format("\"{}\" counts classes from 1 to {}, a loss from 0: subtract 1 in the file",
                       of.labels.name, count);
  }
  return fmt::format("\"{}\" holds {:g} to {:g}, \"{}\" has {} classes, 0 to {}", of.labels.name,
                     numbers.least, numbers.most, of.output, count, count - 1);
}

}  // namespace

LossForm classes() { return {.name = "classes", .guess = guess_classes, .near_miss = near_miss}; }

}  // namespace tandem::api::forms
