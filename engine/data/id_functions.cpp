#include "engine/data/id_functions.h"

#include <algorithm>
#include <vector>

#include "engine/config/keys/config_value.h"
#include "engine/data/functions/field_function.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

void add(std::string& all, const std::string& text) {
  if (!text.empty()) all += (all.empty() ? "" : ", ") + text;
}

/// The text of the field's functions up to the last one that gives ids.
std::string functions_of(const FieldConfig& field) {
  std::string all, up_to_ids;
  for (const Transform& transform : field.as) {
    add(all, transform.function->decides_ids());
    if (transform.kind->gives_ids) up_to_ids = all;
  }
  return up_to_ids;
}

bool gives_ids(const FieldConfig& field) {
  return std::any_of(field.as.begin(), field.as.end(), [](const Transform& transform) {
    return transform.kind->gives_ids || transform.function->vocabulary() != nullptr;
  });
}

/// Which values a column's text holds.
std::string cells_of(const FieldConfig& field) {
  std::string all;
  for (const Transform& transform : field.as) add(all, transform.function->decides_values());
  return all;
}

std::string cells_key(const FieldConfig& field) { return field.name + "/cells"; }

/// What decides the ids of one field, by its key in `id_functions`.
struct Decides {
  std::string key, text;
  const char* none;  // the message where the text is empty
};
std::vector<Decides> decides_ids_of(const FieldConfig& field) {
  std::vector<Decides> all{
      {field.name, functions_of(field), "neither classes, hash nor bucketize"}};
  if (gives_ids(field))
    all.push_back({cells_key(field), cells_of(field), "none of missing, trim, lower and split"});
  return all;
}

}  // namespace

std::map<std::string, std::string> id_functions(const DataConfig& config) {
  std::map<std::string, std::string> functions;
  for (const FieldConfig& field : config.fields) {
    for (Decides& decides : decides_ids_of(field)) functions[decides.key] = std::move(decides.text);
  }
  return functions;
}

void refuse_other_functions(const std::map<std::string, std::string>& before,
                            const RunConfig& config, const std::string& who,
                            const std::string& other_fix) {
  if (!config.data) return;
  std::vector<Diagnostic> problems;
  for (const FieldConfig& field : config.data->fields) {
    for (const auto& [key, now, none] : decides_ids_of(field)) {
      const auto then = before.find(key);
      if (then == before.end() || then->second == now) continue;
      Diagnostic d = at(field.where, "data.fields." + field.name,
                        "the " + who +
                            " was trained with other functions of this field: ids would mean other "
                            "rows");
      d.expected = then->second.empty() ? none : then->second;
      d.got = now.empty() ? none : now;
      d.fix = (then->second.empty() ? "leave " + now + " out" : "write " + then->second) + ", or " +
              other_fix;
      problems.push_back(std::move(d));
    }
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

}  // namespace tandem
