// What windows of token ids need to know of a model, whatever file the ids come from.
#pragma once

#include <vector>

#include "api/init/facts.h"

namespace tandem::api {

struct InputFacts;  // api/init/fields.h

/// The length of windows where nothing says another one.
inline constexpr std::int64_t usual_window = 256;

/// Samples get the length of the model's inputs of that form, where all have one. An input that is
/// called a mask says which tokens are there: all of them.
void fit_windows(const std::vector<InputFacts>& inputs, DataFacts& facts);

/// The tokenizer.json that an export wrote with the model, that beside the data, or that beside the
/// model, where exporters write it; "" for none.
std::string tokenizer_near(const DataFacts& facts);

/// The rows of the largest table that ids are looked up in; 0 where none is seen.
std::int64_t rows_for_ids(const std::vector<InputFacts>& inputs);
/// data.tokenizer of the data: this file; open where it is "", for which `lacks` says what to do,
/// and where it has ids that the model's tables lack, as that of another model has.
void take_tokenizer(const std::string& tokenizer, const std::string& lacks,
                    const std::vector<InputFacts>& inputs, DataFacts& facts);

}  // namespace tandem::api
