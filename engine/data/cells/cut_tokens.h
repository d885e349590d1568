// Tokens of texts that are longer than their field's samples: messages about those left out.
#pragma once

#include <string>
#include <vector>

#include "engine/data/row_encoder.h"

namespace tandem {

/// A sentence for each column of texts whose tokens do not all fit, by the statistics of its
/// fields; one where several fields take the same column.
std::vector<std::string> cut_token_notes(const TablePlan& plan,
                                         const std::vector<std::vector<ColumnStatistics>>& fields);

}  // namespace tandem
