#include "api/use/recorded_fields.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "api/init/guessed_run.h"
#include "engine/formats/files.h"
#include "engine/training/config/config_value.h"
#include "engine/training/config/key_forms.h"
#include "engine/training/data/tokens/read_text.h"

namespace tandem::api {
namespace {

constexpr const char *kind_key = "data.kind", *columns_key = "data.columns";
constexpr std::string_view fields_key = "data.fields.";
// Whose files are told by their endings, and name their columns or arrays.
constexpr std::string_view kinds[] = {"csv", "tsv", "jsonl", "npz"};

std::string toml_of(const FieldConfig& field) {
  std::vector<std::string> functions;
  for (const Transform& transform : field.as) functions.push_back(transform.text);
  std::string text =
      "{ from = " + (field.stacked ? toml_list_of_strings(field.columns) : toml_string(field.from));
  if (!functions.empty()) text += ", as = " + toml_list_of_strings(functions);
  if (field.out_of_range == OutOfRange::zero) text += ", out_of_range = \"zero\"";
  return text + " }";
}

bool is_said(const std::vector<std::string>& overrides, const std::string& key) {
  return std::any_of(overrides.begin(), overrides.end(),
                     [&](const std::string& item) { return says(item, key); });
}

}  // namespace

std::map<std::string, std::string> fields_metadata(const RunConfig& config) {
  std::map<std::string, std::string> metadata;
  if (!config.data) return metadata;
  const std::string_view kind = config.data->kind_name();
  if (std::find(std::begin(kinds), std::end(kinds), kind) == std::end(kinds)) return metadata;
  std::set<std::string> of_loss;
  for (const LossTerm& term : config.loss.terms) {
    for (const std::string& field : term.fields()) of_loss.insert(field);
  }
  for (const FieldConfig& field : config.data->fields) {
    if (of_loss.contains(field.name) || (!field.stacked && field.from.empty())) continue;
    metadata[std::string(fields_key) + field.name] = toml_of(field);
  }
  if (metadata.empty()) return metadata;
  metadata[kind_key] = kind;
  const TextTable* const table = config.data->table();
  if (table != nullptr && kind != JsonLines::name && !table->columns.empty())
    metadata[columns_key] = toml_list_of_strings(table->columns);
  return metadata;
}

std::vector<std::string> recorded_fields(const std::map<std::string, std::string>& metadata,
                                         const std::string& data, const std::string& stem,
                                         const std::vector<std::string>& overrides) {
  const auto kind = metadata.find(kind_key);
  if (kind == metadata.end() || !data.ends_with("." + kind->second)) return {};
  std::vector<std::string> keys;
  for (const auto& [key, text] : metadata) {
    if (!key.starts_with(fields_key)) continue;
    const std::string name = toml_key(key.substr(fields_key.size()));
    if (!is_said(overrides, std::string(fields_key) + name))
      keys.push_back(std::string(fields_key) + name + "=" + text);
  }
  const auto columns = metadata.find(columns_key);
  if (columns != metadata.end() && !is_said(overrides, columns_key))
    keys.push_back(std::string(columns_key) + "=" + columns->second);
  const std::string tokenizer = stem + tokenizer_file;
  if (metadata.contains(tokenizer_file) && path_exists(tokenizer) &&
      !is_said(overrides, "data.tokenizer"))
    keys.push_back("data.tokenizer=" + toml_string(tokenizer));
  return keys;
}

}  // namespace tandem::api
