#include "api/init/recorded_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "api/init/configuration.h"
#include "api/init/facts.h"
#include "api/init/said_keys.h"
#include "api/trained/recorded_fields.h"
#include "engine/config/keys/config_check.h"
#include "engine/data/table_plan.h"
#include "engine/data/tokens/read_text.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/formats/sha256.h"
#include "engine/formats/table_form.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"
#include "importer/file/onnx_file.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using Metadata = std::map<std::string, std::string>;

constexpr std::string_view fields_key = "data.fields.";

/// A key in parts: "data.fields" and the field's name, "loss" and "terms".
struct KeyParts {
  std::string section, name, value;
  ConfigValue read;  // the value
};
std::optional<KeyParts> parts_of(const std::string& key) {
  const ConfigValue root = tree_of({key});
  KeyParts parts;
  const ConfigValue* at = &root;
  while (at->kind == ConfigValue::Kind::table && at->members.size() == 1) {
    const ConfigValue::Member& member = at->members[0];
    parts.section += (parts.section.empty() || parts.name.empty() ? "" : ".") + parts.name;
    parts.name = member.key;
    at = &member.value;
    if (parts.section == "data.fields" || parts.section == "model") break;
    if (parts.section == "loss" || parts.section == "eval") break;
    if (parts.section == "data" && parts.name != "fields") break;
  }
  if (parts.section.empty()) return std::nullopt;
  parts.read = *at;
  const std::string before = parts.section + "." + toml_key(parts.name) + "=";
  if (!key.starts_with(before)) return std::nullopt;
  parts.value = key.substr(before.size());
  return parts;
}

/// Why the vocabulary next to the model is not that of its training; "" where it is.
std::string refusal_of(const std::string& path, const std::string& file, const Metadata& metadata) {
  const std::string name = fs::path(path).filename().string();
  const auto known = metadata.find(file);
  const bool is_there = path_exists(path) && !is_directory(path);
  if (is_there && (known == metadata.end() || hash_file(path).sha256 == known->second)) return "";
  return fmt::format(
      "{} {}: use the one that `tandem export` wrote to the folder of this model; if words were "
      "numbered again, they would look up the rows of other words",
      name,
      is_there ? "is not the vocabulary that the model was trained with"
               : "numbers its words, and is not in the folder of the model");
}

/// Makes a field's key read its vocabularies from the files next to the model.
std::string with_vocabularies(const std::string& key, const std::string& stem,
                              const std::string& folder, const Metadata& metadata,
                              RecordedTraining& recorded) {
  const std::optional<KeyParts> parts = parts_of(key);
  const ConfigValue* const as = parts ? parts->read.find("as") : nullptr;
  std::string changed = key;
  for (const ConfigValue& item : as != nullptr ? as->items : std::vector<ConfigValue>()) {
    const Transform function = parse_transform(item.text);
    const VocabularyPlan* const plan = function.function->vocabulary();
    if (plan == nullptr) continue;
    const std::string name = plan->name.empty() ? parts->name : plan->name;
    const std::string file = vocabulary_file_name(name, {}), path = stem + file;
    if (std::string why = refusal_of(path, file, metadata); !why.empty())
      recorded.todos.emplace(parts->name, std::move(why));
    const std::string written = toml_string(item.text);
    const std::size_t place = changed.find(written);
    if (place != std::string::npos)
      changed.replace(place, written.size(),
                      toml_string(vocabulary_text(*plan, near_path_text(path, folder))));
  }
  return changed;
}

std::string quoted(const std::string& name) { return "\"" + name + "\""; }

/// The names of the first columns or arrays of the data.
std::vector<std::string> names_in(const DataFacts& data, std::size_t most = 40) {
  std::vector<std::string> names;
  for (const ArrayFacts& array : data.arrays) {
    if (!array.stacked && array.made.empty() && names.size() < most) names.push_back(array.name);
  }
  return names;
}

/// Columns or arrays of a field that the data lacks.
std::vector<std::string> lacking(const ConfigValue& field, const DataFacts& data) {
  const std::vector<std::string> names = names_in(data, data.arrays.size());
  std::vector<std::string> missing;
  if (names.empty() || !data.problem.empty()) return {};  // the problem is reported anyway
  for (const std::string& name : said_columns(field)) {
    const bool is_there = data.find(name) != nullptr || data.unread.contains(name) ||
                          (data.rows_read > 0 && find_column(names, name) != std::string::npos);
    if (!is_there) missing.push_back(name);
  }
  return missing;
}

/// A list whose metrics are all tables with only a type is written as a list of names.
std::string metrics_text(const KeyParts& metrics) {
  std::string names;
  for (const ConfigValue& item : metrics.read.items) {
    const ConfigValue* const kind = item.find("kind");
    if (kind == nullptr || item.members.size() != 1) return metrics.value;
    names += (names.empty() ? "" : ", ") + toml_string(kind->text);
  }
  return "[ " + names + " ]";
}

/// The name of the first of these metrics; "" where its options determine it.
std::string first_metric(const ConfigValue& metrics) {
  if (metrics.items.empty()) return "";
  const ConfigValue& first = metrics.items[0];
  if (const ConfigValue* const name = first.find("name")) return name->text;
  const ConfigValue* const kind = first.find("kind");
  return kind != nullptr && first.members.size() == 1 ? kind->text : first.text;
}

/// Replaces several spaces by one.
std::string squeezed_spaces(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c != ' ' || !result.ends_with(' ')) result += c;
  }
  return result;
}

void set_key(GuessedSection& section, GuessedKey key) {
  const auto found = std::find_if(section.keys.begin(), section.keys.end(),
                                  [&](const GuessedKey& one) { return one.name == key.name; });
  if (found != section.keys.end())
    *found = std::move(key);
  else
    section.keys.push_back(std::move(key));
}

}  // namespace

RecordedTraining recorded_training(const std::string& model, const std::string& data,
                                   const std::string& folder,
                                   const std::vector<std::string>& overrides) {
  RecordedTraining recorded;
  if (!path_exists(model) || is_directory(model) || data.empty()) return recorded;
  const Metadata metadata = OnnxFile::open(model).metadata();
  const std::string stem = fs::path(normal_path(model)).replace_extension("").string() + ".";
  RecordedKeys found;
  try {
    found = recorded_keys(metadata, data, stem, overrides);
  } catch (const Error& error) {
    const Diagnostic& d = error.diagnostics()[0];
    recorded.notes.push_back(fmt::format(
        "the model was trained on data of another kind ({}; this is {}): fields are guessed again",
        d.expected, d.got));
    return recorded;
  }
  recorded.has_loss = found.has_loss;
  for (const std::string& key : found.keys)
    recorded.keys.push_back(key.starts_with(fields_key)
                                ? with_vocabularies(key, stem, folder, metadata, recorded)
                                : key);
  return recorded;
}

void lay_over(const RecordedTraining& recorded, const std::string& model, const DataFacts& data,
              Draft& draft) {
  const std::string file = fs::path(model).filename().string();
  const std::string why = "as " + file + " records it of its training";
  bool has_fields = false;
  for (const std::string& key : recorded.keys) {
    std::optional<KeyParts> parts = parts_of(key);
    // Lengths are used where the model is opened.
    if (!parts || parts->section == "model") continue;
    const bool is_usual = (parts->name == "decimal" && parts->read.text == ".") ||
                          (parts->name == "thousands" && parts->read.text == "none");
    if (parts->section == "data" && is_usual) continue;
    GuessedKey line{parts->name, squeezed_spaces(parts->value), why, ""};
    if (parts->section == "data.fields") {
      has_fields = true;
      line.value = parts->value;
      const auto todo = recorded.todos.find(parts->name);
      const std::vector<std::string> missing = lacking(parts->read, data);
      if (!missing.empty())
        line.todo =
            fmt::format("{} makes it of {}, which the data does not have; it has {}", file,
                        joined(missing, ", ", quoted), joined(names_in(data), ", ", quoted));
      else if (todo != recorded.todos.end())
        line.todo = todo->second;
    }
    if (parts->section == "eval") {
      GuessedSection& eval = draft.section("eval");
      if (draft.find("eval", "every") == nullptr) continue;  // nothing is held out
      line.value = metrics_text(*parts);
      set_key(eval, line);
      if (const std::string best = first_metric(parts->read); !best.empty())
        set_key(eval, {"best", toml_string(best),
                       "the checkpoint that eval, predict and export take", ""});
      continue;
    }
    const GuessedKey* const tokenizer = draft.find("data", "tokenizer");
    if (parts->name == "tokenizer" && tokenizer != nullptr) continue;
    set_key(draft.section(parts->section), std::move(line));
  }
  if (has_fields)
    draft.notes.push_back(fmt::format(
        "fields with their functions and vocabularies, the loss and the metrics are those that {} "
        "records of its training; without them its weights would mean something else",
        file));
  draft.notes.insert(draft.notes.end(), recorded.notes.begin(), recorded.notes.end());
}

}  // namespace tandem::api
