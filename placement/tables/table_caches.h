// The caches that a policy asks for: how many rows, and which, from the run's optimizers and data.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/passes/tables/cached_tables.h"
#include "engine/train/tables/row_counts.h"
#include "placement/resolve.h"

namespace tandem {

/// Chooses the caches for one model and its data; keeps what it has counted.
class TableCaches {
 public:
  /// Opens the training data, null where there is none; throws where it cannot be read.
  using Source = std::function<std::shared_ptr<const DataSource>()>;

  /// One for each request. A cache has as many rows as fit into its size with optimizer states;
  /// tables that are looked up by the same ids share their rows, so that ids are split once.
  std::vector<TableCache> choose(const Graph& micro_batch, const RunConfig& config,
                                 const Evaluator& evaluate, const Source& source,
                                 const std::vector<CacheRequest>& constraints);

 private:
  const std::optional<HotRows>& hot_rows(const Graph& micro_batch, const Evaluator& evaluate,
                                         const DataSource& source, const std::string& parameter,
                                         std::int64_t count);

  std::map<std::pair<std::string, std::int64_t>, std::optional<HotRows>> known_;
};

/// Bytes of a row of the graph's table with its optimizer states.
std::int64_t trained_row_bytes(const Graph& micro_batch, const RunConfig& config,
                               const State& table);

/// The caches of a policy, for the forward graphs of its run.
std::vector<CachedTable> cached_tables(const ResolvedPolicy& resolved);

}  // namespace tandem
