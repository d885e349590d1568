// How many different rows of each table a pass looks up, and which rows the data names most often:
// those that a cache shall hold. Counted in the first batches of the data.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/passes/pass.h"
#include "engine/training/data/data_source.h"

namespace tandem {

/// By parameter: different rows that its lookups read in one pass, each lookup by itself; the
/// mean over the first whole passes in the order of the files, at most 32, rounded up. Left out:
/// tables whose ids do not come from fields of the data alone. `pass`: the forward graph imported
/// for one pass. Throws Error{data} where samples cannot be read.
std::map<std::string, std::int64_t> count_unique_rows(const Graph& pass, const DataSource& source,
                                                      const Evaluator& evaluate);

struct HotRows {
  std::shared_ptr<const std::vector<std::int64_t>> rows;  // ascending
  double hit_rate = 0;                                    // part of the ids that name one of them
  std::int64_t cold_rows = 0;  // different other rows that the lookups of a pass name, each
                               // lookup by itself; the mean, rounded up
};

/// The `count` rows (all where the table has no more) that lookups name most often in the first
/// whole passes of the data, at most 32; of equals the lower ones. Nothing where the ids do not
/// come from fields of the data alone, or fill no pass. Throws Error{data} where samples cannot be
/// read.
std::optional<HotRows> find_hot_rows(const Graph& pass, const DataSource& source,
                                     const Evaluator& evaluate, const std::string& parameter,
                                     std::int64_t count);

}  // namespace tandem
