#include "api/init/guessed_run.h"

#include <algorithm>
#include <filesystem>

#include "api/init/configuration.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"
#include "engine/training/config/config_check.h"
#include "engine/training/config/config_names.h"
#include "engine/training/config/config_value.h"

namespace tandem::api {
namespace {

/// The value of "data=PATH", which is then none of the keys.
std::string take_data(std::vector<std::string>& overrides) {
  constexpr std::string_view key = "data=";
  std::string data;
  for (const std::string& item : overrides) {
    if (item.starts_with(key)) data = item.substr(key.size());
  }
  std::erase_if(overrides, [&](const std::string& item) { return item.starts_with(key); });
  return data;
}

/// The word of these that a key has; none where it has another value, which reading refuses.
template <class T>
std::optional<T> said_word(const ConfigValue& table, std::string_view key) {
  const ConfigValue* const value = table.find(key);
  for (const auto& choice : choices_of<T>) {
    if (value != nullptr && value->text == choice.name) return choice.value;
  }
  return std::nullopt;
}

/// What a field is made of; none where that is not said.
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

/// What keys say of the data's cells and, where `has_fields`, of what its columns are for.
SaidOfData said_of_data(const std::vector<std::string>& overrides, bool has_fields) {
  ConfigValue root;
  std::vector<Diagnostic> ignored;  // reading the configuration tells them
  for (const std::string& item : overrides) {
    if (item.starts_with("data.")) apply_override(root, item, ignored);
  }
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

/// Lengths that keys say of the model's free dimensions.
std::map<std::string, std::int64_t> said_bind(const std::vector<std::string>& overrides) {
  ConfigValue root;
  std::vector<Diagnostic> ignored;
  for (const std::string& item : overrides) {
    if (item.starts_with("model.bind")) apply_override(root, item, ignored);
  }
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

/// Keys that say nothing of the model and its inputs.
bool is_of_loss(const Todo& todo) {
  return todo.key.starts_with("loss.") || todo.key == "data.fields.labels" ||
         todo.text == goes_with_loss;
}

Error open_keys(const std::string& model, const std::string& data, const std::vector<Todo>& open) {
  std::vector<Diagnostic> all;
  for (const Todo& todo : open) {
    Diagnostic& d = all.emplace_back();
    d.message = "cannot be guessed: " + todo.text;
    d.file = model;
    d.path = todo.key;
  }
  all.back().fix = "`tandem init " + model + (data.empty() ? "" : " --data " + data) +
                   "` writes a train.toml to fill in";
  return {ErrorKind::usage, std::move(all)};
}

}  // namespace

bool says(const std::string& item, const std::string& key) {
  const std::string set = item.substr(0, item.find('='));
  return set == key || key.starts_with(set + ".") || set.starts_with(key + ".");
}

bool is_guessed(const std::string& path) { return path.ends_with(".onnx"); }

RunConfig guessed_run_config(const std::string& model, TrainOptions& options,
                             std::vector<std::string> overrides, GuessedUse use, bool has_loss) {
  const std::string data = take_data(overrides);
  // The guess is what half of the memory holds.
  std::erase_if(overrides, [](const std::string& item) {
    return item == "batch_size=auto" || item == "batch_size=\"auto\"";
  });
  const std::filesystem::path path = normal_path(model);
  const std::string folder = path.parent_path().string();
  const Engine engine;
  const bool trains = use == GuessedUse::training;
  GuessScope scope{.trains = trains, .in_stages = !trains, .has_loss = has_loss};
  scope.bind = said_bind(overrides);
  scope.said = said_of_data(overrides, !trains);
  const GuessedConfiguration guess = guess_configuration(engine, model, data, folder, scope);
  std::vector<Todo> open = guess.draft.todos();
  std::erase_if(open, [&](const Todo& todo) {
    return std::any_of(overrides.begin(), overrides.end(),
                       [&](const std::string& item) { return says(item, todo.key); });
  });
  if (use == GuessedUse::prediction) std::erase_if(open, is_of_loss);
  if (!open.empty()) throw open_keys(model, data, open);
  if (options.on_message) {
    options.on_message("guessed    " + run_name(model) + " from its file and " + normal_path(data) +
                       "; `tandem init` writes all keys with their reasons");
    for (const ToldChoice& choice : told_choices(guess.draft)) {
      const bool is_said = std::any_of(overrides.begin(), overrides.end(),
                                       [&](const auto& item) { return says(item, choice.key); });
      if (use == GuessedUse::training && !is_said) options.on_message("guessed    " + choice.text);
    }
    for (const std::string& note : guess.draft.notes) options.on_message("guessed    " + note);
  }
  // The first rule is for everything, which the device of the run says as well.
  const bool has_policy = std::any_of(overrides.begin(), overrides.end(), [](const auto& item) {
    return says(item, "policy") || says(item, "device");
  });
  if (!has_policy && guess.rules.size() > 1)
    options.place.insert(options.place.begin(), guess.rules.begin() + 1, guess.rules.end());
  const std::string name = folder + "/guessed train.toml";
  try {
    RunConfig config = parse_run_config(to_toml(guess.draft, guess.head), name, overrides);
    if (!config.batch_choice.is_open) return config;
    throw Error(ErrorKind::usage, Diagnostic{.message = "a guessed run has its size of batches",
                                             .file = name,
                                             .path = "batch_size",
                                             .expected = "a number"});
  } catch (const Error& error) {
    std::vector<Diagnostic> all = error.diagnostics();
    if (all.back().fix.empty()) all.back().fix = "`tandem init` writes this file to look into";
    throw Error(error.kind(), std::move(all));
  }
}

}  // namespace tandem::api
