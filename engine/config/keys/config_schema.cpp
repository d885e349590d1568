// The JSON Schema of a table of keys, for editors.
#include <cstdint>
#include <nlohmann/json.hpp>

#include "engine/config/keys/config_keys.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

/// The texts that `parse_duration` takes.
constexpr const char* duration_pattern =
    R"(^\s*([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\s*)"
    R"((steps?|epochs?|s|sec|seconds?|m|min|minutes?|h|hours?|d|days?)\s*$)";

class SchemaWriter {
 public:
  SchemaWriter(const KeyTable& table, const SchemaSuggestions& suggestions)
      : table_(table), suggestions_(suggestions) {}

  Json table_schema(const std::string& path) const {
    Json schema = {{"type", "object"}, {"additionalProperties", false}};
    const std::string prefix = path.empty() ? "" : path + ".";
    for (const KeyInfo& child : table_.keys) {
      if (!child.path.starts_with(prefix)) continue;
      const std::string_view rest = child.path.substr(prefix.size());
      if (rest.find_first_of(".[") != std::string_view::npos) continue;
      if (rest == "*") {
        schema["additionalProperties"] = schema_of(child);
        continue;
      }
      schema["properties"][std::string(rest)] = schema_of(child);
      if (child.fallback == "required") schema["required"].push_back(rest);
    }
    return schema;
  }

 private:
  const KeyInfo* exact(const std::string& path) const {
    for (const KeyInfo& key : table_.keys) {
      if (key.path == path) return &key;
    }
    return nullptr;
  }

  static Json number_schema(const KeyInfo& key) {
    const bool is_number = key.type & number_value;
    const auto limit = [&](double value) {
      return is_number ? Json(value) : Json(static_cast<std::int64_t>(value));
    };
    Json number = {{"type", is_number ? "number" : "integer"}};
    if (key.low > -9e18) number["minimum"] = limit(key.low);
    if (key.high < 9e18) number["maximum"] = limit(key.high);
    return number;
  }

  /// Texts of a key, or of the key that a text in a table's place sets.
  Json text_schema(const KeyInfo& key) const {
    Json text = {{"type", "string"}};
    for (const std::string& word : words_of(key.allowed)) text["enum"].push_back(word);
    for (const auto& [spelling, word] : key.spellings) text["enum"].push_back(spelling);
    if (!key.allowed.empty()) return text;
    if (key.type & duration_value && !(key.type & string_value)) text["pattern"] = duration_pattern;
    if (key.type & path_value && !key.may_be_empty) text["minLength"] = 1;
    const auto suggested = suggestions_.find(key.path.substr(key.path.rfind('.') + 1));
    if (suggested == suggestions_.end() || suggested->second.empty()) return text;
    const Json known = {{"type", "string"}, {"enum", suggested->second}};
    return {{"anyOf", {known, text}}};
  }

  Json schema_of(const KeyInfo& key) const {
    const std::string path(key.path);
    const KeyInfo* in_its_place =
        key.short_key.empty() ? nullptr : exact(path + "." + std::string(key.short_key));
    std::vector<Json> choices;
    if (key.type & boolean_value) choices.push_back({{"type", "boolean"}});
    if (key.type & (integer_value | number_value)) choices.push_back(number_schema(key));
    constexpr unsigned texts = string_value | path_value | duration_value | selector_value;
    if (key.type & texts) choices.push_back(text_schema(in_its_place ? *in_its_place : key));
    if (key.type & table_value) choices.push_back(table_schema(path));
    if (key.type & list_value) {
      Json list = {{"type", "array"}};
      if (const KeyInfo* item =
              exact((in_its_place ? std::string(in_its_place->path) : path) + "[]"))
        list["items"] = schema_of(*item);
      choices.push_back(list);
    }
    Json schema = choices.size() == 1 ? choices[0] : Json{{"anyOf", choices}};
    schema["description"] = key.help;
    return schema;
  }

  const KeyTable& table_;
  const SchemaSuggestions& suggestions_;
};

}  // namespace

std::string config_json_schema(const KeyTable& table, const SchemaSuggestions& suggestions) {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", table.file}};
  schema.update(SchemaWriter(table, suggestions).table_schema(""));
  return schema.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tandem
