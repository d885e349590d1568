// The path that users write for a parameter, and whether its name says one.
#pragma once

#include <string>

namespace tandem::importer {

/// "fc1:weight" of "fc1.weight"; the name itself where it has no scope.
std::string parameter_path(const std::string& initializer);
/// True for names that exporters invent ("onnx::MatMul_12", "/a/Constant_output_0", "val_3"),
/// numbers included.
bool is_generated_name(const std::string& initializer);

}  // namespace tandem::importer
