// Measures how long the texts of a column are in tokens.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "api/init/facts.h"

namespace tandem::api {

/// The number of texts by number of tokens, special ones included, over the first 1,000 rows of the
/// training files. Texts that the tokenizer refuses are skipped. Throws what Tokenizer::read
/// throws.
std::map<std::int64_t, std::int64_t> token_lengths(const DataFacts& facts,
                                                   const std::string& column,
                                                   const std::string& tokenizer);

}  // namespace tandem::api
