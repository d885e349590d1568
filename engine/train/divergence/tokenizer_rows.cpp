#include "engine/train/divergence/tokenizer_rows.h"

#include <algorithm>

#include "engine/config/keys/config_value.h"
#include "engine/config/rows_line.h"
#include "engine/data/functions/field_function.h"
#include "engine/formats/tokenizer/tokenizer.h"

namespace tandem {
namespace {

/// Whether the field has ids as the tokenizer gives them: no mask, no places.
bool gives_token_ids(const FieldConfig& field) {
  return field.as.size() == 1 && field.as[0].kind->name == "tokens" &&
         field.as[0].text.find("give") == std::string::npos;
}

/// tokenizer.json, where it makes the values of this field; "" where something else does.
std::string tokenizer_of(const DataConfig& data, const std::string& name) {
  const std::string* const path = data.tokenizer_path();
  if (path == nullptr || path->empty()) return "";
  const auto field = std::find_if(data.fields.begin(), data.fields.end(),
                                  [&](const FieldConfig& one) { return one.name == name; });
  const bool is_field = field != data.fields.end();
  if (data.table()) return is_field && gives_token_ids(*field) ? *path : "";
  const bool is_array = is_field ? field->as.empty() && field->from == "tokens"
                                 : data.fields.empty() && name == "tokens";
  return is_array ? *path : "";
}

}  // namespace

std::optional<Diagnostic> foreign_tokenizer(const DataConfig& data, const std::string& field,
                                            const std::string& table, std::int64_t rows) {
  const std::string path = tokenizer_of(data, field);
  if (path.empty()) return std::nullopt;
  const std::int64_t ids = Tokenizer::read(path)->size();
  if (ids <= rows) return std::nullopt;
  return at(data.where, "data.tokenizer",
            path + " has ids up to " + std::to_string(ids - 1) + ", \"" + table + "\" has " +
                std::to_string(rows) + " rows: is it this model's tokenizer?",
            "ids up to " + std::to_string(rows - 1), std::to_string(ids - 1),
            "take the tokenizer.json that belongs to the model; for tokens that are new, " +
                rows_line({{table, ids}}));
}

}  // namespace tandem
