#include "api/init/said_keys.h"

#include <optional>
#include <string_view>

#include "engine/config/keys/config_check.h"
#include "engine/config/keys/config_names.h"

namespace tandem::api {
namespace {

/// The choice that a key names; empty where it has another value, which reading the configuration
/// refuses.
template <class T>
std::optional<T> said_word(const ConfigValue& table, std::string_view key) {
  const ConfigValue* const value = table.find(key);
  for (const auto& choice : choices_of<T>) {
    if (value != nullptr && value->text == choice.name) return choice.value;
  }
  return std::nullopt;
}

}  // namespace

ConfigValue tree_of(const std::vector<std::string>& keys) {
  ConfigValue root;
  std::vector<Diagnostic> ignored;
  for (const std::string& key : keys) apply_override(root, key, ignored);
  return root;
}

std::vector<std::string> said_columns(const ConfigValue& field) {
  const ConfigValue* const from =
      field.kind == ConfigValue::Kind::table ? field.find("from") : &field;
  std::vector<std::string> columns;
  const auto add = [&](const ConfigValue& one) {
    if (const auto names = expand_braces(one.text))
      columns.insert(columns.end(), names->begin(), names->end());
  };
  if (from == nullptr) return columns;
  if (from->kind == ConfigValue::Kind::string) add(*from);
  for (const ConfigValue& one : from->items) add(one);
  return columns;
}

SaidOfData said_of_data(const std::vector<std::string>& keys, bool has_fields) {
  const ConfigValue root = tree_of(keys);
  SaidOfData said;
  const ConfigValue* const data = root.find("data");
  if (data == nullptr) return said;
  said.decimal = said_word<DecimalMark>(*data, "decimal");
  said.thousands = said_word<ThousandsMark>(*data, "thousands");
  if (const ConfigValue* const missing = data->find("missing")) {
    said.missing.emplace();
    for (const ConfigValue& word : missing->items) said.missing->push_back(word.text);
  }
  const ConfigValue* const fields = data->find("fields");
  if (fields == nullptr || !has_fields) return said;
  for (const ConfigValue::Member& field : fields->members) {
    std::vector<std::string> columns = said_columns(field.value);
    if (!columns.empty()) said.fields[field.key] = std::move(columns);
  }
  return said;
}

std::map<std::string, std::int64_t> said_bind(const std::vector<std::string>& keys) {
  const ConfigValue root = tree_of(keys);
  std::map<std::string, std::int64_t> lengths;
  const ConfigValue* const model = root.find("model");
  const ConfigValue* const bind = model == nullptr ? nullptr : model->find("bind");
  if (bind == nullptr) return lengths;
  for (const ConfigValue::Member& one : bind->members) {
    if (one.value.kind == ConfigValue::Kind::integer && one.value.integer > 0)
      lengths[one.key] = one.value.integer;
  }
  return lengths;
}

}  // namespace tandem::api
