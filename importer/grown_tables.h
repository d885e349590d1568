// Tables that get more rows at import than their placeholder in the file has.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "importer/file/initializers.h"
#include "importer/file/onnx_content.h"
#include "importer/import_graph.h"

namespace tandem::importer {

/// Types by initializer name; without those that have the rows already.
using GrownTables = std::unordered_map<std::string, TensorType>;

/// Throws Error{usage} naming rules that cover no parameter, and nodes other than Gather along
/// axis 0 that read a table. `shared`: initializers that are an earlier one.
GrownTables grown_tables(const OnnxFile::Content& file, const std::vector<bool>& needed,
                         const std::unordered_map<std::string, Role>& roles,
                         const std::unordered_map<std::string, std::string>& shared,
                         const std::vector<RowsRule>& rules);

/// The types of parameters that ImportOptions::resized gives another shape, by initializer name.
/// Throws Error{usage} for names that the file does not have, and shapes of another rank.
GrownTables resized_parameters(const OnnxFile::Content& file,
                               const std::map<std::string, Shape>& shapes);

/// Zeros of tables.at(name); pages that are never written take no memory. Throws
/// Error{does_not_fit} with it and larger ones where the host has no such range.
HostTensor zeros_of(const std::string& name, const GrownTables& tables);

/// Throws as grown_tables where something else reads a table, after functions and graphs inside
/// nodes were lowered.
void check_readers(const Graph& graph, const OnnxFile::Content& file, const GrownTables& tables);

}  // namespace tandem::importer
