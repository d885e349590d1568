#include "engine/formats/weights/torch_names.h"

#include <algorithm>
#include <cctype>

namespace tandem {
namespace {

constexpr std::pair<std::string_view, DType> storages[] = {
    {"Float", DType::float32}, {"Double", DType::float64},    {"Half", DType::float16},
    {"Byte", DType::uint8},    {"BFloat16", DType::bfloat16}, {"Char", DType::int8},
    {"Short", DType::int16},   {"Int", DType::int32},         {"Long", DType::int64},
    {"Bool", DType::boolean}};
constexpr std::string_view callable[] = {rebuild_tensor, rebuild_any_tensor, rebuild_parameter,
                                         "torch.Size", "torch.device"};
constexpr std::string_view module = "torch.", storage = "Storage";

/// Lower-case letters, digits and "_": "complex64", "float8_e4m3fn".
bool is_element_type(std::string_view name) {
  constexpr std::string_view kinds[] = {"float", "bfloat", "complex", "int",    "uint", "bool",
                                        "qint",  "quint",  "half",    "double", "long"};
  const std::size_t letters =
      std::find_if_not(name.begin(), name.end(), [](unsigned char c) { return std::islower(c); }) -
      name.begin();
  const std::string_view rest = name.substr(letters);
  return std::find(std::begin(kinds), std::end(kinds), name.substr(0, letters)) !=
             std::end(kinds) &&
         (rest.empty() || std::isdigit(static_cast<unsigned char>(rest[0])) != 0) &&
         std::all_of(rest.begin(), rest.end(), [](unsigned char c) {
           return std::islower(c) || std::isdigit(c) || c == '_';
         });
}

}  // namespace

std::optional<DType> dtype_of_storage(std::string_view name) {
  if (!name.starts_with(module) || !name.ends_with(storage)) return std::nullopt;
  name.remove_prefix(module.size());
  name.remove_suffix(storage.size());
  for (const auto& [known, dtype] : storages) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_of_torch(std::string_view name) {
  if (!name.starts_with(module)) return std::nullopt;
  return dtype_from_name(name.substr(module.size()));  // PyTorch has the same names
}

bool may_be_called_in_weights(std::string_view name) {
  return std::find(std::begin(callable), std::end(callable), name) != std::end(callable);
}

bool may_stand_in_weights(std::string_view name) {
  if (may_be_called_in_weights(name) || name == untyped_storage) return true;
  if (!name.starts_with(module)) return false;
  const std::string_view rest = name.substr(module.size());
  const bool is_storage = rest.ends_with(storage) && rest.find('.') == std::string_view::npos;
  return is_storage || is_element_type(rest);
}

}  // namespace tandem
