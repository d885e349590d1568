// Labels of a language model: the ids that it reads, shifted by one position.
#pragma once

#include <memory>

#include "api/init/loss.h"

namespace tandem::api {

/// The next-token loss, where an output scores ids at each position of a row of ids, and no
/// position sees later ones. Its labels are made from the field of those ids. Empty where the model
/// or its fields are of another kind; `why_not` then says which condition failed.
std::optional<LossChoice> next_token_loss(const ModelFacts& model,
                                          const std::vector<InputFacts>& inputs,
                                          const FieldGuesses& fields, const DataFacts& data,
                                          std::string& why_not);

/// Whether labels repeat the ids of an input that the output scores, as transformers' own loss
/// expects them: they must then be shifted by one position.
bool are_unshifted(const ModelFacts& model, const FieldGuesses& fields, const ArrayFacts& labels);

}  // namespace tandem::api
