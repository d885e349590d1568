// Class numbers with a score for every class: softmax_cross_entropy, or nll of log-probabilities.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/init/losses/loss_form.h"

namespace tandem::api::forms {
namespace {

/// The number of classes that the output scores, where labels of this shape fit it; 0: they do not.
std::int64_t classes(const Shape& output, Shape labels) {
  if (output.empty()) return 0;
  if (labels.size() == output.size() && labels.back() == 1) labels.pop_back();
  if (labels.size() + 1 != output.size()) return 0;
  const bool last = std::equal(labels.begin(), labels.end(), output.begin());
  const bool first = std::equal(labels.begin(), labels.end(), output.begin() + 1);
  const std::int64_t count = last ? output.back() : first ? output.front() : 0;
  return count >= 2 ? count : 0;
}

/// The only value outside the classes, where it is usual for "no label": PyTorch's -100, or 255 in
/// masks.
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

/// For labels that are words: one per class, or fewer.
std::optional<LossGuess> guess_words(const LossCase& of, std::int64_t count) {
  const std::vector<std::string> words = label_words(of, count);
  const std::string list = classes_function(words);
  if (list.empty()) return std::nullopt;
  const bool are_all = static_cast<std::int64_t>(words.size()) == count;
  LossGuess loss;
  loss.as = {list};
  loss.why = fmt::format(
      "\"{}\" scores {} classes; \"{}\" holds {} words, numbered from 0 in this order", of.output,
      count, of.labels.name, are_all ? "as many" : std::to_string(words.size()));
  loss.certainty = are_all ? 3 : 2;
  return loss;
}

std::optional<LossGuess> guess_numbers(const LossCase& of, std::int64_t count) {
  const Numbers& numbers = of.labels.numbers;
  if (!numbers.finite || !numbers.whole) return std::nullopt;
  const bool in_range = numbers.least >= 0 && numbers.most < static_cast<double>(count);
  const std::string ignore = in_range ? "" : ignored(numbers, count);
  if (!in_range && ignore.empty()) return std::nullopt;
  LossGuess loss;
  loss.as = label_functions(of.labels, true);
  loss.why = fmt::format("\"{}\" scores {} classes for each label; \"{}\" holds ", of.output, count,
                         of.labels.name) +
             (of.labels.is_unread
                  ? "ids of tokens"
                  : fmt::format("whole numbers from {:g} to {:g}", numbers.least, numbers.most));
  if (!ignore.empty()) {
    loss.options = ", ignore_index = " + ignore;
    loss.why += ", where " + ignore + " is no class and does not count";
  }
  if (!of.labels.made.empty() && of.labels.padding) {  // texts that a decoder writes
    loss.options = fmt::format(", ignore_index = {}", *of.labels.padding);
    loss.why = fmt::format(
        "\"{}\" scores every id at each place; labels are the ids {}, where {} is the padding and "
        "does not count (with another pad in the field, set ignore_index to it)",
        of.output, of.labels.made, *of.labels.padding);
  }
  // Labels that use the last class fit this output more certainly than those that do not.
  loss.certainty = in_range && numbers.most == static_cast<double>(count - 1) ? 3 : 2;
  return loss;
}

std::optional<LossGuess> guess_classes(const LossCase& of) {
  const std::int64_t count = classes(of.shape, of.labels.sample.shape);
  if (count == 0 || of.labels.has_gaps() || of.op == "Sigmoid") return std::nullopt;
  std::optional<LossGuess> loss =
      of.labels.is_text ? guess_words(of, count) : guess_numbers(of, count);
  if (!loss) return std::nullopt;
  const bool is_log = of.op == "LogSoftmax";
  loss->kind = is_log ? "nll" : "softmax_cross_entropy";
  loss->value_key = is_log ? "log_probabilities" : "logits";
  loss->value = of.op == "Softmax" ? of.before : of.output;
  loss->labels_key = "labels";
  loss->metrics = {"accuracy"};
  if (!of.labels.made.empty()) loss->metrics.insert(loss->metrics.begin(), "perplexity");
  if (of.op == "Softmax")
    loss->why += "; the model ends in a Softmax, which the loss applies itself: its input is named";
  return loss;
}

std::string empty_fields(const ArrayFacts& labels) {
  return fmt::format("\"{}\" has empty fields", labels.name);
}

/// Why labels that are texts do not match the classes.
std::string near_miss_of_words(const LossCase& of, std::int64_t count) {
  const bool are_few = of.labels.texts <= count;
  const std::string unlisted = are_few ? unlisted_labels(of) : "";
  if (!unlisted.empty()) return unlisted;
  if (are_few && of.labels.has_gaps()) return empty_fields(of.labels);
  return fmt::format(
      "\"{}\" holds {} different texts, \"{}\" has {} classes: classes('a', 'b', …) in `as` "
      "lists their words",
      of.labels.name, of.labels.texts, of.output, count);
}

/// "classes(1, 2, 3)"; of many only the beginning.
std::string classes_from_one(std::int64_t count) {
  constexpr std::int64_t most = 100;
  std::string list;
  for (std::int64_t i = 1; i <= std::min(count, most); ++i)
    list += (i > 1 ? ", " : "") + std::to_string(i);
  return "classes(" + list + (count > most ? ", …)" : ")");
}

std::string near_miss(const LossCase& of) {
  const std::int64_t count = classes(of.shape, of.labels.sample.shape);
  if (count == 0) return "";
  const Numbers& numbers = of.labels.numbers;
  if (of.labels.is_text) return near_miss_of_words(of, count);
  if (of.labels.has_gaps()) return empty_fields(of.labels);
  if (!numbers.whole || !numbers.finite) return "";
  if (numbers.least == 1 && numbers.most == static_cast<double>(count)) {
    return fmt::format("\"{}\" counts classes from 1 to {}, a loss from 0: {}", of.labels.name,
                       count,
                       of.labels.columns.empty() || of.labels.has_points
                           ? "subtract 1 in the file"
                           : "as = [ \"" + classes_from_one(count) + "\" ] numbers them so");
  }
  return fmt::format("\"{}\" holds {:g} to {:g}, \"{}\" has {} classes, 0 to {}", of.labels.name,
                     numbers.least, numbers.most, of.output, count, count - 1);
}

}  // namespace

LossForm classes() { return {.name = "classes", .guess = guess_classes, .near_miss = near_miss}; }

}  // namespace tandem::api::forms
