// Weights that a file keeps in 16 bits and casts to float32 in front of every use.
#pragma once

#include <set>
#include <string>

#include "importer/file/onnx_content.h"

namespace tandem::importer {

/// Initializers of float16 and bfloat16 that reach nothing but casts to float32, through nodes that
/// only move elements. They can be float32 from the start.
std::set<std::string> stored_halves(const OnnxFile::Content& file);

}  // namespace tandem::importer
