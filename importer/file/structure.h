// What the meaning of trained weights rests on in a model file.
#pragma once

#include <string>
#include <vector>

#include "engine/train/checkpoints/fingerprint.h"
#include "importer/file/onnx_file.h"

namespace tandem {

/// The operators that the file's outputs rest on, numbered from the outputs back: with version,
/// attributes other than ONNX's defaults, inputs; graphs inside of them and functions too. Names of
/// inputs, outputs and initializers count, names of operators and of values between them do not,
/// nor do the first axes of inputs, which are the batch. For parameters and running statistics the
/// type counts, for constants the values. `values`: names of values whose makers are listed too.
ModelStructure structure_of(const OnnxFile& file, const std::vector<std::string>& values = {});

}  // namespace tandem
