// What an export makes of adapters: chosen by --lora, --format and the name of the file.
#pragma once

#include <cstdint>
#include <string>

#include "tandem/trained.h"

namespace tandem::api {

enum class AdapterForm : std::uint8_t {
  merged,        // summed into the weights that they belong to
  separate,      // tensors of their own; in an .onnx with nodes of their own
  inputs,        // inputs of an .onnx, which computes without adapters where they are not fed
  peft,          // a folder or .safetensors of adapters alone, for PEFT
  onnx_adapter,  // a file of adapters alone, for onnxruntime: values of those inputs
};

/// Throws Error{usage}, with the option, for a word that is none of the choices, and for choices
/// that do not fit each other or the name of the file.
AdapterForm adapter_form(const ExportSettings& settings, const std::string& to);

}  // namespace tandem::api
