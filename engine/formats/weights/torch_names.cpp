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
constexpr std::pair<std::string_view, DType> element_types[] = {
    {"float32", DType::float32}, {"float64", DType::float64},   {"float16", DType::float16},
    {"uint8", DType::uint8},     {"bfloat16", DType::bfloat16}, {"int8", DType::int8},
    {"int16", DType::int16},     {"int32", DType::int32},       {"int64", DType::int64},
    {"bool", DType::boolean},    {"uint16", DType::uint16},     {"uint32", DType::uint32},
    {"uint64", DType::uint64}};
constexpr std::string_view callable[] = {rebuild_tensor, rebuild_any_tensor, rebuild_parameter,
                                         "torch.Size", "torch.device"};
constexpr std::string_view module = "torch.", storage = "Storage";

template <class List>
std::optional<DType> type_named(std::string_view name, const List& list) {
  for (const auto& [known, dtype] : list) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

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
  return type_named(name, storages);
}

std::optional<DType> dtype_of_torch(std::string_view name) {
  if (!name.starts_with(module)) return std::nullopt;
  return type_named(name.substr(module.size()), element_types);
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
