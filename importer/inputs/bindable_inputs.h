// Inputs of a file that can have the same value in every step.
#pragma once

#include <string>
#include <vector>

#include "importer/file/onnx_file.h"

namespace onnx {
class ValueInfoProto;
}

namespace tandem {

/// Inputs that `ImportOptions::bind` may give a value: one element each, a whole number or a
/// boolean. What this value decides, such as the branch of an If, is decided at import.
std::vector<std::string> bindable_inputs(const OnnxFile& file);

namespace importer {

/// Whether it is such an input by its type. A name that is also a free dimension's means the
/// dimension.
bool may_have_bound_value(const onnx::ValueInfoProto& input);

}  // namespace importer

}  // namespace tandem
