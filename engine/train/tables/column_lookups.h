// Inputs whose columns are ids of different tables: which element of a sample looks up rows of
// which table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/passes/pass.h"

namespace tandem {

/// A lookup in a parameter by some elements of an input, with only slices, reshapes and sums with
/// constants between them.
struct ColumnLookup {
  std::string input, parameter, path;  // path: of the lookup
  std::int64_t rows = 0;               // the table's rows
  /// By element of a sample: what is added to it before it is looked up; `unread` where it is not.
  std::vector<std::int64_t> offsets;
  static constexpr std::int64_t unread = INT64_MIN;
};

/// The lookups by inputs [batch, elements..] in which each looked up id depends on one element of
/// its own sample. Lookups by whole inputs as they are count as well.
std::vector<ColumnLookup> column_lookups(const Graph& graph, const Evaluator& evaluate);

/// How many ids an element may have, 0 and up, so that all of its lookups name rows: the rows of
/// its table; where offsets give columns parts of one table, the part up to the next offset. -1
/// where nothing looks it up.
std::vector<std::int64_t> rows_of_elements(const std::vector<ColumnLookup>& lookups,
                                           const std::string& input, std::int64_t elements);

}  // namespace tandem
