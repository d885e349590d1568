// A kind of loss that outputs and labels may call for.
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
  std::string op;      // "Softmax", "LogSoftmax" or "Sigmoid" where the output is made by one
  std::string before;  // the value that it reads
  const ArrayFacts& labels;
  std::vector<std::string> words = {};  // what the model calls its classes; empty: it does not say
};

struct LossGuess {
  std::string kind;
  std::string value_key, value;  // "logits", "logits"
  std::string labels_key;        // "labels" | "targets"
  std::vector<std::string> as;   // functions of the labels' field
  std::string options;           // more keys of the term, TOML: ", ignore_index = -100"
  std::vector<std::string> metrics;
  std::string why;
  std::string note;   // for people: what may come of it
  std::string doubt;  // what else it could be: then it is no guess, but a TODO
  int certainty = 0;  // of two guesses the greater one counts
};

struct LossForm {
  std::string_view name;
  /// Nothing where output and labels do not fit together so.
  std::optional<LossGuess> (*guess)(const LossCase& of) = nullptr;
  /// Where they nearly do: what is wrong. "" else.
  std::string (*near_miss)(const LossCase& of) = nullptr;
};

std::span<const LossForm> all_loss_forms();

/// What numbers a column of words as so many classes: the model's own words in its order, where the
/// column holds no others, else those of the column, sorted. None where these are more.
std::vector<std::string> label_words(const LossCase& of, std::int64_t count);
/// Why words cannot be numbered, whatever their number; "" where they can.
std::string unlisted_labels(const LossCase& of);

/// Without extents of 1.
Shape squeezed(const Shape& shape);
/// Casts that labels need to be whole numbers, or numbers, of a loss.
std::vector<std::string> label_functions(const ArrayFacts& labels, bool whole);

}  // namespace tandem::api
