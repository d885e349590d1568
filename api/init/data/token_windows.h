// Settings for windows of token ids that depend on the model, whatever file the ids come from.
#pragma once

#include <vector>

#include "api/init/facts.h"

namespace tandem::api {

struct InputFacts;  // api/init/fields.h

/// The length of windows where nothing gives another one.
inline constexpr std::int64_t usual_window = 256;

/// The length that all inputs of rows of whole numbers have; -1: the model leaves it free; 0: there
/// is none, or they differ.
std::int64_t length_of_rows(const std::vector<InputFacts>& inputs);
/// The number of positions that the model is known to have, but at most `usual`.
std::int64_t most_positions(const std::vector<InputFacts>& inputs, const DataFacts& facts,
                            std::int64_t usual);
/// The only input that is named like a mask gets the array `mask`; the first array is that of the
/// tokens.
void add_mask_array(const std::vector<InputFacts>& inputs, const std::string& made,
                    DataFacts& facts);

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
