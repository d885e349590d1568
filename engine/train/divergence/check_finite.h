// Looks for NaN in the data, once before a run.
#pragma once

#include <string>

#include "engine/config/run_config.h"
#include "engine/data/data_source.h"
#include "engine/graph/graph.h"
#include "engine/graph/structures/function_ref.h"

namespace tandem {

/// NaN in float fields that the graph or a loss term reads: Error{data} with file and row of the
/// first samples. Where the graph may remove it again (a comparison, Where, a part of the input
/// that is cut out), it may be intended: `say` gets a message. Text tables have none. `forward`:
/// the imported graph, for any batch size.
void check_finite_fields(const RunConfig& config, const Graph& forward, const DataSource& source,
                         FunctionRef<void(const std::string&)> say);

}  // namespace tandem
