// Whether a tokenizer has ids that a table of the model lacks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/config/data_config.h"
#include "engine/graph/error.h"

namespace tandem {

/// The problem where the ids of this field are those of tokenizer.json, which has more of them than
/// the table has rows: most likely it belongs to another model. Nothing where it has not more, and
/// for fields that something else makes.
std::optional<Diagnostic> foreign_tokenizer(const DataConfig& data, const std::string& field,
                                            const std::string& table, std::int64_t rows);

}  // namespace tandem
