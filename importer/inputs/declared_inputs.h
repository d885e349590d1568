// The fed inputs of a file as it declares them, before anything is bound.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/graph/types.h"
#include "importer/file/onnx_file.h"

namespace tandem {

struct DeclaredInput {
  std::string name;
  std::optional<DType> dtype;     // none: a type that no graph has
  std::vector<std::string> dims;  // "batch_size", "784", "?"
  bool may_have_value = false;    // one of `bindable_inputs`
};

std::vector<DeclaredInput> declared_inputs(const OnnxFile& file);

}  // namespace tandem
