// A kind of loss as a value: its name, its keys, what it reads, and the graph that it builds.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/keys/config_keys.h"
#include "engine/config/run_config.h"
#include "engine/graph/builder.h"

namespace tandem {

class LossBuilder;

/// What a loss expects of a value of the graph. Only outputs of Softmax, LogSoftmax and Sigmoid
/// can be recognised as something else.
enum class ValueForm {
  numbers,
  logits,
  log_probabilities,
  any_logits,  // logits or logarithms of probabilities
};

/// A value of the graph that a loss reads, and the key that names it.
struct LossValue {
  std::string_view key;
  std::string_view help;
  ValueForm form = ValueForm::numbers;
};

enum class LabelForm {
  none,
  numbers,      // in the first value's shape
  zero_to_one,  // in the first value's shape: 0 for no, 1 for yes, or a probability
  signs,        // -1 or 1, one a sample
  classes,      // integers; without the class axis of the first value
  sequences,    // integers; a list of class numbers for each sample
};
/// Whether labels are numbers of classes.
constexpr bool are_class_numbers(LabelForm form) {
  return form == LabelForm::classes || form == LabelForm::sequences;
}

/// The data field that a loss compares with, and the key that names it.
struct LossLabels {
  LabelForm form = LabelForm::none;
  std::string_view key;
  std::string_view help;
};

/// A further data field, which a term need not name, and the key that names it.
struct LossField {
  std::string_view key;
  std::string_view help;
};

/// What a loss reads of one sample of the data; a field that the term does not name has no number.
struct LossSample {
  Shape scores;  // the first value's, the batch included
  std::vector<std::int64_t> labels;
  std::vector<std::optional<double>> fields;
};

/// Why no step can be taken with a sample, because of a data field.
struct SampleProblem {
  std::string field, message, expected, got, fix;
};

/// What metrics and predictions may take the first value for; may be or-ed.
enum Scores : unsigned {
  other_scores = 0,
  number_scores = 1,  // estimates of the labels
  binary_scores = 2,  // above 0: yes
  binary_logits = 4,  // their sigmoid is the probability
  class_scores = 8,   // the class is that of the greatest one
  class_logits = 16,  // their softmax gives the probabilities
};

/// A term of one micro-batch, before it is reduced.
struct Losses {
  ValueId losses;         // sample after sample
  ValueId label_weights;  // in the shape of `losses`, which include them already; unset: all 1
  Shape positions = {};   // [batch, ..]: what `losses` was reshaped from; empty: as it is
  bool has_batch = true;  // false: equal in every micro-batch of a step
};

struct LossKind {
  std::string_view name;
  std::string_view source;  // where the definition is from
  std::string_view help;    // the formula, one line
  std::vector<LossValue> values;
  LossLabels labels = {};
  std::vector<LossField> fields = {};
  AnyOptions options = {};  // besides those of every term, with their defaults
  unsigned scores = other_scores;
  bool sample_weights = true;  // the term may name a field with weights
  /// The loss of a sample depends on the other samples of its batch.
  bool compares_samples = false;
  /// Whether labels of a term must not be below 0; null: they may be.
  bool (*refuses_negative_labels)(const LossTerm&) = nullptr;
  /// What is wrong with a sample, if anything is; asked before training. Null: nothing ever is.
  std::optional<SampleProblem> (*refuse_sample)(const LossTerm&, const LossSample&) = nullptr;
  /// Nothing where a mistake was reported.
  std::optional<Losses> (*build)(LossBuilder&) = nullptr;
};

/// All kinds, in the order of the list all_losses.inl.
std::span<const LossKind> all_losses();
/// Null where there is no such kind.
const LossKind* find_loss(std::string_view name);
/// "a, b or c" of the kinds with one of these scores.
std::string losses_with(unsigned scores);
/// docs/losses.md: every kind with its formula, source, keys and defaults.
std::string losses_markdown();

}  // namespace tandem
