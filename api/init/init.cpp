// tandem::api::init: writes train.toml and policy.toml next to a model.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/editor_schemas.h"
#include "api/init/configuration.h"
#include "api/output_file.h"
#include "api/program/init.h"
#include "engine/config/run_config.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;

/// Refuses, before anything is read, if one of the two files exists.
void refuse_existing(const std::vector<std::string>& files, const std::string& folder) {
  std::vector<Diagnostic> problems;
  if (path_exists(folder) && !is_directory(folder)) {
    problems.push_back({.message = "this is no folder",
                        .file = "--to",
                        .got = folder,
                        .fix = "name a folder; one that is not there is made"});
  }
  for (const std::string& file : files) {
    std::error_code failed;
    if (fs::symlink_status(file, failed).type() == fs::file_type::not_found) continue;
    problems.push_back({.message = "this file is there already, and stays as it is",
                        .file = file,
                        .fix = "name another folder with --to, or move the file away"});
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

std::string shown(const std::string& path) {
  const std::string near = fs::path(path).lexically_relative(current_folder()).string();
  return near.empty() || near.starts_with("..") ? path : near;
}

std::string report_text(const InitReport& report, const Draft& draft) {
  std::string text;
  for (const std::string& warning : draft.warnings) text += "warning    " + warning + "\n";
  for (const std::string& file : report.files) text += "wrote      " + shown(file) + "\n";
  text +=
      "schemas    " + joined(report.schemas, ", ", shown) + "  (with them editors check keys)\n";
  for (const ToldChoice& choice : told_choices(draft)) text += choice.text + "\n";
  for (const std::string& note : draft.notes) text += "note       " + note + "\n";
  for (const std::string& note : draft.model_notes) text += "note       " + note + "\n";
  for (const Diagnostic& d : report.open)
    text += on_one_line("TODO       " + d.path + ": " + d.message) + "\n";
  const std::string config = shown(report.files[0]);
  return text + (report.open.empty()
                     ? "next       tandem train " + config + " --dry-run, then without --dry-run"
                     : "next       fill in what is marked # TODO in " + config +
                           ", then tandem train " + config + " --dry-run");
}

nlohmann::ordered_json report_json(const InitReport& report, const Draft& draft) {
  nlohmann::ordered_json keys = nlohmann::ordered_json::array();
  for (const GuessedSection& section : draft.sections) {
    for (const GuessedKey& key : section.keys) {
      nlohmann::ordered_json item{
          {"key", (section.name.empty() ? "" : section.name + ".") + key.name},
          {"value", key.value},
          {"why", key.why}};
      if (!key.todo.empty()) item["todo"] = key.todo;
      keys.push_back(std::move(item));
    }
  }
  std::vector<std::string> notes = draft.notes;
  notes.insert(notes.end(), draft.model_notes.begin(), draft.model_notes.end());
  return {{"files", report.files},
          {"schemas", report.schemas},
          {"keys", std::move(keys)},
          {"notes", std::move(notes)},
          {"warnings", draft.warnings}};
}

}  // namespace

InitReport init(const std::string& model_path, const InitOptions& options) {
  const std::string folder = options.to.empty()
                                 ? fs::path(normal_path(model_path)).parent_path().string()
                                 : normal_path(options.to);
  InitReport report;
  report.files = {(fs::path(folder) / "train.toml").string(),
                  (fs::path(folder) / "policy.toml").string()};
  refuse_existing(report.files, folder);
  const Engine engine;
  if (!options.eval.empty() && options.data.empty()) {
    throw Error(ErrorKind::usage, Diagnostic{.message = "held-out data without data to train on",
                                             .file = "--eval",
                                             .fix = "name that with --data"});
  }
  GuessScope scope = training_scope(model_path, options.data, folder, {});
  scope.said.held_out = options.eval;
  GuessedConfiguration guess = guess_configuration(engine, model_path, options.data, folder, scope);
  GuessedSection& top = guess.draft.section("");
  top.keys.insert(top.keys.begin() + 1,
                  {"policy", "\"policy.toml\"", "what runs and lives where", ""});
  for (const Todo& todo : guess.draft.todos())
    report.open.push_back({.message = todo.text, .file = report.files[0], .path = todo.key});
  const std::string text = std::string(train_schema_line) + to_toml(guess.draft, guess.head);
  // A failure would be a fault of this program.
  if (report.open.empty()) parse_run_config(text, report.files[0]);
  make_directories(folder);
  write_output(report.files[0], text, "train.toml", "");
  write_output(report.files[1], std::string(policy_schema_line) + guess.policy, "policy.toml", "");
  report.schemas = write_editor_schemas(folder, guess.names);
  report.text = report_text(report, guess.draft);
  report.json = report_json(report, guess.draft)
                    .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return report;
}

}  // namespace tandem::api
