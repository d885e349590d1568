// Row-sparse gradients: where a parameter's gradient only comes from lookups, as ids and dy's.
#pragma once

#include <optional>
#include <vector>

#include "engine/graph/graph.h"

namespace tandem {

/// The gradient of a table [rows, columns...]: the rows ids[k] get the rows of dy[k], k after k;
/// rows that occur several times get the sum. For a sum of looked-up rows (EmbeddingBag), each run
/// of bags[k] ids gets the same row of dy[k], each id times its weight.
struct RowGradient {
  std::vector<ValueId> ids;  // int32 or int64, each by itself
  std::vector<ValueId> dy;
  std::vector<std::int64_t> bags;
  std::vector<ValueId> weights;  // in the shape of ids; -1: there are none
};

/// How many ids there are in all.
std::int64_t id_count(const Graph& graph, const RowGradient& rows);

/// Whether the row form pays compared with the dense form, for this number of ids.
inline bool are_few(std::int64_t ids, std::int64_t table_rows) { return ids <= table_rows / 4; }

/// Nothing where some part of the gradient is dense, or ids are constants. Adds no nodes: the dense
/// gradient stays in the graph for its other readers.
std::optional<RowGradient> row_gradient(const Graph& graph, ValueId gradient);

}  // namespace tandem
