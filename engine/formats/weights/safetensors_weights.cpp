// Weights of a safetensors file.
#include "engine/formats/safetensors.h"
#include "engine/formats/weights/tensor_list.h"

namespace tandem {

namespace {

std::unique_ptr<WeightsFile> open_safetensors_weights(const std::string& path) {
  const SafetensorsFile file(path);
  constexpr std::string_view head = "alias:";  // tied weights under their other names
  std::map<std::string, std::string> aliases;
  for (const auto& [key, name] : file.metadata()) {
    if (key.starts_with(head)) aliases[key.substr(head.size())] = name;
  }
  return std::make_unique<TensorList>(file.tensors(), aliases);
}

}  // namespace

WeightsFormat safetensors_weights() {
  return {"safetensors", ".safetensors", open_safetensors_weights};
}

}  // namespace tandem
