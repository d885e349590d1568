// Tables that are sharded by rows or by columns, or kept whole on one rank each: lookups ask the
// ranks that keep the rows.
#pragma once

#include "engine/graph/graph.h"
#include "engine/train/graph/rank_sums.h"

namespace tandem {

class OperatorSet;

/// The forward graph with this rank's part in place of each table of `shards` that is sharded by
/// rows or by columns, or is on only one rank (table_owners.h; matrices that products read are in
/// shard_products.h), and with lookups of the rows that all ranks have sent:
///
///   ids -> ShardIds -> UniqueIndices -> ShardRows -> ExchangeRows -> Gather in the own part
///       -> ExchangeRows -> the lookup itself, with each id's position among the sorted ones
///
/// or with sums of rows in place of rows (shard_bags.h), where those are less.
///
/// Each row that a rank looks up crosses once, and so does its gradient, which goes back to the
/// rank that keeps the row as one of that part: rows that several ranks ask for are added up there
/// in the order of the ranks. For a table by columns every rank is asked for all rows (ShardColumns
/// in place of ShardRows), and the pieces that come are concatenated. Tables with the same ids that
/// are sharded alike share the exchange of ids; whole ones where one rank has them. Throws
/// Error{usage} where something else than a lookup by ids reads such a table, a cache holds some of
/// its rows, a rank would have no columns, or ranks with different numbers of samples have no room
/// that is the same on all.
Graph shard_tables(const OperatorSet& operators, const Graph& forward, const Shardings& shards,
                   const RankShares& ranks);

}  // namespace tandem
