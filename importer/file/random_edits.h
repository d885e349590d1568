// Random numbers that are off outside of training leave the file's graph.
#pragma once

#include <string>

#include "importer/import_graph.h"
#include "onnx/onnx_pb.h"

namespace tandem::importer {

/// Random numbers that are on only in training leave the model, as `import` says for the original
/// file: they are bypassed, or become their mean. Returns what people have to know of those that
/// stay; "" where none does.
std::string drop_randomness(onnx::ModelProto& model, const OnnxFile& file,
                            const OperatorSet& operators, ImportOptions import);

}  // namespace tandem::importer
