// Initializers that a file adds to products: biases that have lost their names.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "importer/file/onnx_content.h"

namespace tandem::importer {

/// Initializers of one element for each column or channel of a product that an Add adds to it,
/// moved perhaps (channels last), where the product's weight has a name that the exporter made up:
/// one that folds constants leaves of a layer neither the names nor the bias's place in Conv or
/// Gemm. Next to a weight with a name of its own they are constants. Numbers without an axis are
/// none.
std::unordered_set<std::string> added_biases(const OnnxFile::Content& file,
                                             const std::vector<bool>& needed);

}  // namespace tandem::importer
