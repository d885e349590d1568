// Files that onnxruntime-training has made of a model.
#pragma once

#include <string_view>

#include "importer/file/onnx_content.h"

namespace tandem::importer {

/// Throws Error{usage} for graphs in which onnxruntime's derivatives or optimizers stand already.
void refuse_artifacts(const OnnxFile::Content& file);

/// Throws Error{usage} for onnxruntime's checkpoints, which are no ONNX files.
void refuse_artifact_checkpoint(std::string_view bytes, const std::filesystem::path& path);

}  // namespace tandem::importer
