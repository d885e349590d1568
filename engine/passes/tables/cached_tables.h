// Tables of which a device caches some rows: two parameters instead of one in the forward graph.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/operators/operator.h"

namespace tandem {

struct CachedTable {
  std::string table;  // the parameter's name
  /// The rows that are in the cache, ascending, fewer than 2^31. Tables that share the list and
  /// the ids of their lookups share the split of the ids, too.
  std::shared_ptr<const std::vector<std::int64_t>> rows;
};

/// The name of a table's cache (CachedRows), and the path of the operators that read it.
inline std::string cached_name(const std::string& name) { return name + "/cached"; }

/// Each lookup y = Gather(table, ids), or EmbeddingBag, becomes
///   cold, hot = SplitIds(ids);  y = Gather(table, cold) + Gather(table/cached, hot)
/// where the cache's lookup and the sum have the path `cached_name` of the lookup's. A row has
/// its value, its gradient and its update in only one of the two: the table's own copy of a cached
/// row is not kept up to date. Throws Error{usage} where something else reads such a table.
Graph split_cached_tables(const Graph& graph, const OperatorSet& operators,
                          const std::vector<CachedTable>& tables);

}  // namespace tandem
