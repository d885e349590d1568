// Structural checks of a model before anything else looks at it.
#pragma once

#include <string_view>

#include "importer/file/onnx_content.h"

namespace tandem::importer {

/// The parts (messages and strings) that parsing `bytes` would create, counted without parsing:
/// a file of two-byte parts would fill a hundred times its size of memory. Stops above `most`.
std::int64_t count_messages(std::string_view bytes, std::int64_t most);

/// Names, versions, order of nodes, nesting, expansion of functions. Fills `content.opsets` and
/// `content.functions`; throws Error at the first breach.
void check_file(OnnxFile::Content& content);

}  // namespace tandem::importer
