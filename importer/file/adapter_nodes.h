// Adapters of low rank as nodes of a ModelProto, next to the products that they belong to.
#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "importer/file/onnx_content.h"
#include "importer/import_graph.h"

namespace tandem::importer {

/// Adds to each MatMul, Gemm and Conv of the main graph that reads such a weight the product with
/// its adapters, whose operands become initializers or inputs; to products with packed weights,
/// too. Names of values that others read stay. Throws Error{usage} for a weight that is read in
/// another way or inside a function, where adapters can only be merged, and for a taken name of an
/// input. `shared`: initializers that are an earlier one, whose readers have its adapters as well.
/// `file` names the model in messages.
void add_adapter_nodes(onnx::ModelProto& model, const std::vector<WeightAdapters>& adapters,
                       const std::unordered_map<std::string, std::string>& shared,
                       const std::filesystem::path& file);

}  // namespace tandem::importer
