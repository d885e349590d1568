// A single score for each label of 0 or 1: binary_cross_entropy.
#include <fmt/format.h>

#include <algorithm>

#include "api/init/losses/loss_form.h"

namespace tandem::api::forms {
namespace {

/// One number per sample, or a mask of one channel.
bool is_one_score(const Shape& shape) {
  return squeezed(shape).empty() || (shape.size() >= 3 && shape.front() == 1);
}

/// The number of labels that are 0 and that are 1.
struct Counts {
  double zeros = 0, ones = 0;

  double of_the_rarer() const { return std::min(zeros, ones); }
  double share_of_ones() const { return ones / std::max(zeros + ones, 1.0); }
  /// Whether a held-out tenth of the labels very likely has both classes, which auc needs: with 40
  /// of the rarer class it has none with probability 0.9^40, or 1.5 %.
  bool has_both() const { return of_the_rarer() >= (is_rare() ? 40 : 100); }
  /// The commoner answer is right for more than four in five, so that accuracy says little.
  bool is_rare() const { return of_the_rarer() > 0 && of_the_rarer() < 0.2 * (zeros + ones); }
};

Counts counts_of(const ArrayFacts& labels) {
  if (!labels.is_text) {
    const double ones = labels.numbers.sum;
    return {static_cast<double>(labels.numbers.count) - ones, ones};
  }
  if (labels.word_counts.size() != 2) return {};
  return {static_cast<double>(labels.word_counts[0]), static_cast<double>(labels.word_counts[1])};
}

/// Adds metrics, best first, and a note where one class is rare.
void add_metrics(const LossCase& of, Counts counts, LossGuess& loss) {
  if (!squeezed(of.shape).empty() || counts.of_the_rarer() == 0) return;
  if (counts.is_rare()) {
    loss.note = fmt::format("{:.3g} % of \"{}\" are 1: always saying {} is right in {:.3g} %",
                            100 * counts.share_of_ones(), of.labels.name,
                            counts.ones < counts.zeros ? "no" : "yes",
                            100 * std::max(counts.share_of_ones(), 1 - counts.share_of_ones()));
    if (counts.has_both()) loss.note += ", so `best` is auc";
    loss.note += fmt::format(
        "; `pos_weight = {:.4g}` in the loss term (zeros / ones) weighs both classes alike, and "
        "probabilities are then too high",
        counts.zeros / counts.ones);
  }
  if (!counts.has_both()) return;
  if (counts.is_rare())
    loss.metrics = {"auc", "auc_pr", "accuracy", "log_loss"};
  else
    loss.metrics.insert(loss.metrics.begin() + 1, "auc");
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
    if (!of.labels.is_label) loss.certainty = 2;  // the column may be anything
    Counts counts = counts_of(of.labels);
    if (words[0] != of.labels.words.front()) std::swap(counts.zeros, counts.ones);
    add_metrics(of, counts, loss);
  } else {
    loss.as = label_functions(of.labels, false);
    add_metrics(of, counts_of(of.labels), loss);
    loss.why = fmt::format("\"{}\" has one number for each label, and \"{}\" holds only 0 and 1",
                           of.output, of.labels.name);
  }
  if (of.op == "Sigmoid")
    loss.why += "; the model ends in a Sigmoid, which the loss applies itself: its input is named";
  return loss;
}

/// Why a column of labels that looks like two classes is not used: it has a third word, or a word
/// that a list cannot contain.
std::string miss_of_two_words(const LossCase& of) {
  const ArrayFacts& labels = of.labels;
  const bool fit = squeezed(of.shape) == squeezed(labels.sample.shape) && is_one_score(of.shape);
  if (!labels.is_text || !fit) return "";
  if (labels.texts == 2 && !labels.has_gaps()) return unlisted_labels(of);
  if (!labels.is_label) return "";
  std::string miss;
  if (labels.has_gaps())
    miss = fmt::format("\"{}\" has {} empty fields, and each row needs a label", labels.name,
                       labels.missing);
  if (!labels.rare_text.empty())
    miss =
        fmt::format("\"{}\" holds {} different texts, and \"{}\" distinguishes two: {} occurs {}",
                    labels.name, labels.texts, of.output, labels.rare_text,
                    labels.rare_count == 1 ? "once" : fmt::format("in {} rows", labels.rare_count));
  return miss.empty() ? "" : miss + "; correct the file, or leave such rows out of it";
}

}  // namespace

LossForm binary() {
  return {.name = "binary", .guess = guess_binary, .near_miss = miss_of_two_words};
}

}  // namespace tandem::api::forms
