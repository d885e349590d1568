// Guesses the loss from outputs of a model and labels of the data.
#pragma once

#include <memory>

#include "api/init/fields.h"
#include "api/init/losses/loss_form.h"

namespace tandem::api {

struct LossChoice {
  bool of_model = false;  // the model has its own: no terms
  std::string output;     // loss.output, where the model has several outputs
  std::string why;
  std::string todo;             // set where nothing could be chosen
  LossGuess term;               // the term, possibly only a suggestion
  FieldGuess labels;            // the field that the term reads
  std::int64_t unlabelled = 0;  // rows whose label is an empty field, which are left out
  /// For labels that are made from an input's array: what `labels.from` points to.
  std::shared_ptr<const ArrayFacts> own_labels = nullptr;
};

/// `fields`: of the model's inputs; their arrays are no labels. `data` null: there is none.
LossChoice guess_loss(const ModelFacts& model, const std::vector<InputFacts>& inputs,
                      const FieldGuesses& fields, const DataFacts* data);

/// The term as an item of loss.terms.
std::string term_toml(const LossGuess& term, const std::string& labels);

}  // namespace tandem::api
