// Gives weights of a merged decoder the names back that they have in its two halves.
#pragma once

#include "importer/file/onnx_content.h"

namespace tandem::importer {

/// optimum's merge_decoders calls each initializer NAME_merged_0, so that a weight of
/// "h.0.attn.c_attn.weight" would be no weight of its module. Initializers of the main graph lose
/// this end, in the exported file as well, where nothing else has the name. Of a checked file.
void restore_merged_names(onnx::ModelProto& model);

}  // namespace tandem::importer
