// How many different rows of each table a micro-batch looks up, and which rows the data names most
// often: those that a cache should hold. Counted in the first batches of the data.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/data_source.h"
#include "engine/graph/graph.h"
#include "engine/passes/pass.h"

namespace tandem {

/// By parameter: different rows that its lookups read in one micro-batch, each lookup counted
/// separately; the mean over the first whole micro-batches in the order of the files, at most 32,
/// rounded up. Left out: tables whose ids do not come only from fields of the data. `forward`: the
/// graph imported for one micro-batch. Throws Error{data} where samples cannot be read.
std::map<std::string, std::int64_t> count_unique_rows(const Graph& forward,
                                                      const DataSource& source,
                                                      const Evaluator& evaluate);

struct HotRows {
  std::shared_ptr<const std::vector<std::int64_t>> rows;  // ascending
  double hit_rate = 0;                                    // part of the ids that name one of them
  std::int64_t cold_rows = 0;  // different other rows that the lookups of a micro-batch name, each
                               // lookup by itself; the mean, rounded up
};

/// The `count` rows (all where the table has no more) that lookups name most often in the first
/// whole micro-batches of the data, at most 32; of equals the lower ones. Nothing where the ids do
/// not come only from fields of the data, or fill no micro-batch. Throws Error{data} where samples
/// cannot be read.
std::optional<HotRows> find_hot_rows(const Graph& forward, const DataSource& source,
                                     const Evaluator& evaluate, const std::string& parameter,
                                     std::int64_t count);

}  // namespace tandem
