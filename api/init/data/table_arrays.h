// What text tables of all kinds have in common: columns that make an axis, and columns of texts.
#pragma once

#include <string>

#include "api/init/facts.h"

namespace tandem::api {

/// Adds columns of one name with numbers at the end as one array; and all but those that are called
/// a label.
void add_stacks(DataFacts& facts);

/// Where `tokenizer.json` lies beside the data, adds for each input that takes a row of whole
/// numbers an array of its name: the ids that the tokenizer makes of the first column of texts, or
/// what tells real ones from filled up ones. Inputs of other lengths each have their own.
void add_token_arrays(const std::vector<InputFacts>& inputs, DataFacts& facts);

}  // namespace tandem::api
