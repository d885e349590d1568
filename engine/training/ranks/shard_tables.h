// Tables that are shared out among ranks, by rows, by columns or whole: lookups ask the ranks that
// keep the rows.
#pragma once

#include "engine/graph/graph.h"
#include "engine/training/rank_sums.h"

namespace tandem {

class OperatorSet;

/// The forward graph with this rank's part in place of each table of `shards` that is shared by
/// rows or by columns, or is with one rank alone (table_owners.h; of matrices that products read
/// shard_products.h tells), and with lookups of what all ranks have brought:
///
///   ids -> ShardIds -> UniqueIndices -> ShardRows -> ExchangeRows -> Gather in the own part
///       -> ExchangeRows -> the lookup itself, with each id's position among the sorted ones
///
/// or with sums of rows in place of rows (shard_bags.h), where those are less.
///
/// Each row that a rank looks up crosses once, and so does its gradient, which goes back to the
/// rank that keeps the row as one of that part: rows that several ranks ask for are added up there
/// in the order of the ranks. Of a table by columns every rank is asked for all rows (ShardColumns
/// in place of ShardRows), and the pieces that come are put side by side. Tables with the same ids
/// that are shared out alike share the exchange of ids; whole ones where one rank has them. Throws
/// Error{usage} where something else than a lookup by ids reads such a table, a cache holds some of
/// its rows, a rank would have no columns, or ranks with different numbers of samples have no room
/// that is the same on all.
Graph shard_tables(const OperatorSet& operators, const Graph& forward, const Shardings& shards,
                   const RankShares& ranks);

}  // namespace tandem
