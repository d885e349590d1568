// The graphs of training_info as contents of files, which import reads like any other.
#pragma once

#include <memory>

#include "importer/file/onnx_content.h"

namespace tandem::importer {

/// The graph that a training step runs: the lists of the main graph followed by those of the
/// algorithm. It holds the types of initializers; only the content holds their values. Refers to
/// functions of `file`, which has to live as long.
OnnxFile::Content step_content(const OnnxFile::Content& file);

/// The graph of the initialization.
OnnxFile::Content initialization_content(const OnnxFile::Content& file);

}  // namespace tandem::importer
