// Settings for windows of token ids that depend on the model, whatever file the ids come from.
#pragma once

#include <vector>

#include "api/init/facts.h"

namespace tandem::api {

struct InputFacts;  // api/init/fields.h

/// The length of windows where nothing gives another one.
inline constexpr std::int64_t usual_window = 256;

/// Gives samples the length of the model's inputs of that form, where all have the same one. An
/// input named like a mask says which tokens are real: all of them.
void fit_windows(const std::vector<InputFacts>& inputs, DataFacts& facts);

/// The tokenizer.json that an export wrote with the model, else the one next to the data, else the
/// one next to the model, where exporters write it; "" for none.
std::string tokenizer_near(const DataFacts& facts);

/// The number of rows of the largest table that ids are looked up in; 0 where none is found.
std::int64_t rows_for_ids(const std::vector<InputFacts>& inputs);
/// Sets data.tokenizer to this file. The key stays open where it is "" (`lacks` then says what to
/// do), and where the tokenizer has ids that the model's tables lack, as that of another model has.
void take_tokenizer(const std::string& tokenizer, const std::string& lacks,
                    const std::vector<InputFacts>& inputs, DataFacts& facts);

}  // namespace tandem::api
