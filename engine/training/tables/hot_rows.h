// Which rows of a table the data names most often: those that a cache shall hold.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/passes/pass.h"
#include "engine/training/data/data_source.h"

namespace tandem {

struct HotRows {
  std::shared_ptr<const std::vector<std::int64_t>> rows;  // ascending
  double hit_rate = 0;                                    // part of the ids that name one of them
  std::int64_t cold_rows = 0;  // different other rows that the look-ups of a pass name, each
                               // look-up by itself; the mean, rounded up
};

/// The `count` rows (all where the table has no more) that look-ups name most often in the first
/// whole passes of the data, at most 32; of equals the lower ones. Nothing where the ids do not
/// come from fields of the data alone, or fill no pass. Throws Error{data} where samples cannot be
/// read.
std::optional<HotRows> find_hot_rows(const Graph& pass, const DataSource& source,
                                     const Evaluator& evaluate, const std::string& parameter,
                                     std::int64_t count);

}  // namespace tandem
