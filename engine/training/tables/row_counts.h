// How many different rows of each table a pass looks up, counted in the first batches of the data.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/graph/graph.h"
#include "engine/passes/pass.h"
#include "engine/training/data/data_source.h"

namespace tandem {

/// By parameter: different rows that its look-ups read in one pass, each look-up by itself; the
/// mean over the first whole passes in the order of the files, at most 32, rounded up. Left out:
/// tables whose ids do not come from fields of the data alone. `pass`: the forward graph imported
/// for one pass. Throws Error{data} where samples cannot be read.
std::map<std::string, std::int64_t> count_unique_rows(const Graph& pass, const DataSource& source,
                                                      const Evaluator& evaluate);

}  // namespace tandem
