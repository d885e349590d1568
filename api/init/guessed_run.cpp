#include "api/init/guessed_run.h"

#include <algorithm>
#include <filesystem>

#include "api/init/configuration.h"
#include "api/init/said_keys.h"
#include "api/program/terminal.h"
#include "engine/config/keys/config_check.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"

namespace tandem::api {
namespace {

/// Takes the value of "data=PATH" out of the keys.
std::string take_data(std::vector<std::string>& overrides) {
  constexpr std::string_view key = "data=";
  std::string data;
  for (const std::string& item : overrides) {
    if (item.starts_with(key)) data = item.substr(key.size());
  }
  std::erase_if(overrides, [&](const std::string& item) { return item.starts_with(key); });
  return data;
}

/// Whether a todo concerns the loss, not the model and its inputs.
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
    if (!todo.line.empty())
      d.fix = "if that is meant, add " + for_shell(todo.line) + " to the line";
  }
  std::string& fix = all.back().fix;
  fix += (fix.empty() ? "" : "; ") + std::string("`tandem init ") + model +
         (data.empty() ? "" : " --data " + data) + "` writes a train.toml to fill in";
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
  // The guess is already the size that fits half of the memory.
  std::erase_if(overrides, [](const std::string& item) {
    return item == "batch_size=auto" || item == "batch_size=\"auto\"";
  });
  const std::filesystem::path path = normal_path(model);
  const std::string folder = path.parent_path().string();
  const Engine engine;
  const bool trains = use == GuessedUse::training;
  GuessScope scope;
  if (trains) {
    scope = training_scope(model, data, folder, overrides);
  } else {
    scope = {.trains = false, .in_stages = true, .has_loss = has_loss};
    scope.bind = said_bind(overrides);
    scope.said = said_of_data(overrides, true);
  }
  GuessedConfiguration guess = guess_configuration(engine, model, data, folder, scope);
  const bool holds_out = std::any_of(overrides.begin(), overrides.end(), [](const auto& item) {
    return item.starts_with("data.eval.files");
  });
  if (holds_out) {  // instead of a part of the training data
    guess.draft.section("data.eval").keys.clear();
    std::erase_if(guess.draft.files,
                  [](const ToldChoice& choice) { return choice.key.starts_with("data.eval."); });
  }
  const bool has_steps = std::any_of(overrides.begin(), overrides.end(),
                                     [](const auto& item) { return says(item, "steps"); });
  if (has_steps) {  // a length that is given is not cut short by a guessed one
    std::erase_if(guess.draft.section("").keys,
                  [](const GuessedKey& key) { return key.name == "epochs"; });
  }
  std::vector<Todo> open = guess.draft.todos();
  std::erase_if(open, [&](const Todo& todo) {
    return std::any_of(overrides.begin(), overrides.end(),
                       [&](const std::string& item) { return says(item, todo.key); });
  });
  if (use == GuessedUse::prediction) std::erase_if(open, is_of_loss);
  if (!open.empty()) throw open_keys(model, data, open);
  if (options.on_message) {
    options.on_message("guessed    what " + path.filename().string() +
                       " does not say about its settings is guessed from " + normal_path(data) +
                       "; `tandem init` writes all keys with their reasons");
    for (const ToldChoice& choice : told_choices(guess.draft)) {
      const bool is_said = std::any_of(overrides.begin(), overrides.end(),
                                       [&](const auto& item) { return says(item, choice.key); });
      if (use == GuessedUse::training && !is_said) options.on_message("guessed    " + choice.text);
    }
    for (const std::string& note : guess.draft.notes) options.on_message("guessed    " + note);
  }
  // The first rule places everything, which the device of the run does too.
  const bool has_policy =
      options.policy || std::any_of(overrides.begin(), overrides.end(), [](const auto& item) {
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
    if (all.back().fix.empty())
      all.back().fix = "`tandem init` writes this file, where you can change it";
    throw Error(error.kind(), std::move(all));
  }
}

}  // namespace tandem::api
