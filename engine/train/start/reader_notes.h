// Which parameters the selectors of a configuration match by the operators that read them: reported
// before a run, since no name of the parameter shows it.
#pragma once

#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/graph/graph.h"

namespace tandem {

/// A line for each selector that matches some parameter only by a reader: `parameters.freeze
/// "q_proj:weight" means 2 parameters by what reads them: onnx::MatMul_12 as q_proj:weight, …`.
std::vector<std::string> reader_notes(const RunConfig& config, const Graph& graph);

}  // namespace tandem
