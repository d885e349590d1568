// The labels of a language model: the ids that it reads, one place ahead.
#pragma once

#include <memory>

#include "api/init/loss.h"

namespace tandem::api {

/// Where an output scores ids at each place of a row of them, and no place sees later ones: the
/// loss of the next token, with labels made of the field of those ids. Nothing where the model or
/// its fields are of another kind; `why_not` then says what came nearest.
std::optional<LossChoice> next_token_loss(const ModelFacts& model,
                                          const std::vector<InputFacts>& inputs,
                                          const FieldGuesses& fields, const DataFacts& data,
                                          std::string& why_not);

/// Whether labels repeat the ids of an input that the output scores, as transformers' own loss
/// takes them: they are one place ahead then.
bool are_unshifted(const ModelFacts& model, const FieldGuesses& fields, const ArrayFacts& labels);

}  // namespace tandem::api
