// Advice on ids that name no row of their table.
#pragma once

#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/graph/graph.h"

namespace tandem {

/// The name of a table in selectors.
std::string selector_of(const Graph& graph, const std::string& table);

/// The line of train.toml that gives each of these tables a row for the id `greatest`, where they
/// have `rows`; "" where one of them cannot have more, or where that would be many times as many.
std::string line_for_ids(const Graph& graph, const std::vector<std::string>& tables,
                         double greatest, std::int64_t rows);

/// What to do about such ids of a field: more rows, or the function that numbers a column's values,
/// or, where the field `may_be_zero`, zeros.
std::string remedy_of_ids(const RunConfig& config, const std::string& field,
                          const std::string& line, bool are_large, bool may_be_zero);

}  // namespace tandem
