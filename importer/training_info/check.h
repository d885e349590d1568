// What training_info may say, beyond what holds for graphs.
#pragma once

#include "importer/file/onnx_content.h"

namespace tandem::importer {

/// Bindings: keys are initializers, each once; values are outputs; no two states take each other's
/// values. Throws Error{usage} at the first breach. Of a model with one training_info, whose graphs
/// were checked.
void check_bindings(const OnnxFile::Content& content);

}  // namespace tandem::importer
