// How long the texts of a column are in tokens.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "api/init/facts.h"

namespace tandem::api {

/// How many texts of the column have so many tokens, special ones included: of the first 1,000 rows
/// of the training files. Texts that the tokenizer does not take are passed over. Throws Error of
/// Tokenizer::read.
std::map<std::int64_t, std::int64_t> token_lengths(const DataFacts& facts,
                                                   const std::string& column,
                                                   const std::string& tokenizer);

}  // namespace tandem::api
