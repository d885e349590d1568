// Weights inside of branches and of the bodies of loops.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "importer/file/onnx_content.h"
#include "importer/import_graph.h"

namespace tandem::importer {

using Renames = std::unordered_map<std::string, std::string>;
/// Renames what nodes and graphs inside of them read, and what these graphs return.
void rename_reads(onnx::GraphProto& graph, const Renames& names);

/// Moves floating-point initializers of branches and bodies to the main graph, which these read:
/// there they are parameters like all others, in the exported file as well. Where two graphs have
/// one name, the second is called NAME_2. Of a checked file: no name hides another.
void lift_branch_weights(onnx::ModelProto& model);

/// Floating-point values that weights would be, were they initializers of the main graph: those of
/// graphs in nodes that could not be lifted, and Constant nodes in the place of a weight.
std::vector<ParameterSummary> fixed_weights(const OnnxFile::Content& file);

}  // namespace tandem::importer
