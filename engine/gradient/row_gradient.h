// Row-sparse gradients: where a parameter's gradient comes from lookups alone, as ids and dy's.
#pragma once

#include <optional>
#include <vector>

#include "engine/graph/graph.h"

namespace tandem {

/// The gradient of a table [rows, columns...]: the rows ids[k] get the rows of dy[k], k after k;
/// rows that occur several times get the sum. Of a sum of looked-up rows (EmbeddingBag) bags[k] ids
/// in turn get the same row of dy[k], each times its weight.
struct RowGradient {
  std::vector<ValueId> ids;  // int32 or int64, each by itself
  std::vector<ValueId> dy;
  std::vector<std::int64_t> bags;
  std::vector<ValueId> weights;  // of the shape of ids; -1: there are none
};

/// How many ids there are in all.
std::int64_t id_count(const Graph& graph, const RowGradient& rows);

/// Whether rows are worth it beside the dense form: so many ids of a table of so many rows.
inline bool are_few(std::int64_t ids, std::int64_t table_rows) { return ids <= table_rows / 4; }

/// Nothing where some part of the gradient is dense, or ids are constants. It makes no nodes: the
/// dense gradient stays in the graph for whoever reads it.
std::optional<RowGradient> row_gradient(const Graph& graph, ValueId gradient);

}  // namespace tandem
