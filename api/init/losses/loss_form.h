// The interface of a type of loss that init can guess from outputs and labels.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/init/fields.h"

namespace tandem::api {

/// An output of the model and an array that might be its labels, both without the batch axis.
struct LossCase {
  std::string output;
  Shape shape;
  /// The operator that makes the output: "Softmax", "LogSoftmax", "Sigmoid"; else "".
  std::string op;
  std::string before;  // the value that this operator reads
  const ArrayFacts& labels;
  std::vector<std::string> words = {};  // the model's names of its classes; empty: it has none
};

struct LossGuess {
  std::string kind;
  std::string value_key, value;  // "logits", "logits"
  std::string labels_key;        // "labels" | "targets"
  std::vector<std::string> as;   // functions of the labels' field
  std::string options;           // more keys of the term, TOML: ", ignore_index = -100"
  std::vector<std::string> metrics;
  std::string why;
  std::string note;   // for people: what may result from it
  std::string doubt;  // what else it could be; where set, the guess becomes a TODO
  int certainty = 0;  // the guess with the greatest certainty is used
};

struct LossForm {
  std::string_view name;
  /// Empty where output and labels do not fit together in this form.
  std::optional<LossGuess> (*guess)(const LossCase& of) = nullptr;
  /// Where they nearly fit: what is wrong. Else "".
  std::string (*near_miss)(const LossCase& of) = nullptr;
};

std::span<const LossForm> all_loss_forms();

/// The words by which a column of words is numbered as `count` classes: the model's own words in
/// its order, where the column holds no others, else those of the column, sorted. Empty where there
/// are more than `count`.
std::vector<std::string> label_words(const LossCase& of, std::int64_t count);
/// Why words cannot be numbered, however many there are; "" where they can.
std::string unlisted_labels(const LossCase& of);

/// The shape without extents of 1.
Shape squeezed(const Shape& shape);
/// Casts that make labels the whole numbers (`whole`) or the numbers that a loss needs.
std::vector<std::string> label_functions(const ArrayFacts& labels, bool whole);

}  // namespace tandem::api
