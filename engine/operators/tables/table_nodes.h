// What nodes do with tables, their rows and the ids that name them.
#pragma once

#include <cstdint>

#include "engine/graph/graph.h"

namespace tandem {

enum class TableWork : std::uint8_t {
  none,
  looks_up,           // Gather(table, ids) along axis 0: a row for each id
  sums_rows,          // EmbeddingBag(table, ids, weights): sums of looked-up rows
  adds_cached_rows,   // GatherAdd(base, cache, places)
  splits_ids,         // SplitIds(ids): those that a cache holds, and the others
  groups_ids,         // UniqueIndices(ids...): the rows that occur
  marks_rows,         // MarkRows(marks, ids...): in the passes of a step
  finds_marked_rows,  // TouchedRows(marks): groups of the rows that were marked
  packs_rows,         // GatherRows(table, rows, count): the rows that occur, one behind the other
  plans_rows,         // PlanRows(rows, count, ...): those that were not fetched ahead
  updates_rows,       // RowsUpdate(table, states..., groups, gradients...)
  norms_rows,         // RowsSumOfSquares(groups, gradients...)
};
TableWork table_work(const Node& node);

/// Whether the node's input 0 is a table of which it reads the rows that its ids name.
inline bool is_row_lookup(const Node& node) {
  const TableWork work = table_work(node);
  return work == TableWork::looks_up || work == TableWork::sums_rows;
}

}  // namespace tandem
