#include "api/init/guessed_run.h"

#include <algorithm>
#include <filesystem>

#include "api/init/configuration.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"

namespace tandem::api {
namespace {

/// Whether an override sets this key, a part of it or a table that it is in.
bool says(const std::string& item, const std::string& key) {
  const std::string set = item.substr(0, item.find('='));
  return set == key || key.starts_with(set + ".") || set.starts_with(key + ".");
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

bool is_guessed(const std::string& path, const std::string& data) {
  if (path.ends_with(".onnx")) return true;
  if (data.empty()) return false;
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "data is given beside a train.toml, which names its own",
                         .file = "--data",
                         .expected = "an ONNX file in place of the train.toml",
                         .got = path,
                         .fix = "leave --data away, or set data.train.files"});
}

RunConfig guessed_run_config(const std::string& model, TrainOptions& options,
                             const std::vector<std::string>& overrides) {
  const std::filesystem::path path = normal_path(model);
  const std::string folder = path.parent_path().string();
  const Engine engine;
  const GuessedConfiguration guess = guess_configuration(engine, model, options.data, folder);
  std::vector<Todo> open = guess.draft.todos();
  std::erase_if(open, [&](const Todo& todo) {
    return std::any_of(overrides.begin(), overrides.end(),
                       [&](const std::string& item) { return says(item, todo.key); });
  });
  if (!open.empty()) throw open_keys(model, options.data, open);
  if (options.on_message) {
    options.on_message("guessed    " + run_name(model) + " from its file and " +
                       normal_path(options.data) +
                       "; train.resolved.toml of the run directory has every key, `tandem init` "
                       "writes them with their reasons");
    for (const std::string& note : guess.draft.notes) options.on_message("guessed    " + note);
  }
  // In a run's order: the guesses, then what the user says.
  const bool has_policy = std::any_of(overrides.begin(), overrides.end(), [](const auto& item) {
    return says(item, "policy") || says(item, "device");
  });
  if (!has_policy && guess.rules.size() > 1)
    options.place.insert(options.place.begin(), guess.rules.begin(), guess.rules.end());
  const std::string name = folder + "/guessed train.toml";
  return parse_run_config(to_toml(guess.draft, guess.head), name, overrides);
}

}  // namespace tandem::api
