// Tied weights: initializers that are one tensor, and the other names that a file records for a
// state.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "importer/file/initializers.h"
#include "importer/file/onnx_content.h"

namespace tandem::importer {

/// Initializers with the bytes of an earlier one (the same type and the same place of the same
/// external file), both states of one kind: {other: earlier}.
std::unordered_map<std::string, std::string> shared_initializers(
    const OnnxFile::Content& file, const std::unordered_map<std::string, Role>& roles);
std::unordered_map<std::string, std::string> shared_initializers(const OnnxFile::Content& file);

/// Every other name that the file has for one of `states`: shared initializers, results of
/// Identity, and parameters of the exported module that share another one's initializer.
/// {other: state}.
std::map<std::string, std::string> tied_names(
    const OnnxFile::Content& file, const std::vector<bool>& needed,
    const std::unordered_map<std::string, std::string>& shared, const Graph& graph);

/// What torch.export's signature lists of a kind: "PARAMETER"; "": of all kinds. Nothing where the
/// file has none.
std::vector<std::string> listed_targets(const onnx::ModelProto& model, const std::string& kind);

}  // namespace tandem::importer
