// Weights inside of branches and of the bodies of loops.
#pragma once

#include <vector>

#include "importer/file/onnx_content.h"
#include "importer/import_graph.h"

namespace tandem::importer {

/// Moves floating-point initializers of branches and bodies to the main graph, which these read:
/// there they are parameters like all others, in the exported file as well. Where two graphs have
/// one name, the second is called NAME_2. Of a checked file: no name hides another.
void lift_branch_weights(onnx::ModelProto& model);

/// Floating-point values that weights would be, were they initializers of the main graph: those of
/// graphs in nodes that could not be lifted, and Constant nodes in the place of a weight.
std::vector<ParameterSummary> fixed_weights(const OnnxFile::Content& file);

}  // namespace tandem::importer
