#include "api/trained_run.h"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "api/run_files.h"
#include "api/table_rows.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"

namespace tandem::api {
namespace {

using Json = nlohmann::json;

bool sets(const std::vector<std::string>& overrides, const std::string& key) {
  return std::any_of(overrides.begin(), overrides.end(), [&](const std::string& text) {
    return text.starts_with(key + "=") || text.starts_with(key + " ");
  });
}

std::vector<std::string> texts(const Json& list) {
  std::vector<std::string> result;
  if (!list.is_array()) return result;
  for (const Json& text : list) {
    if (text.is_string()) result.push_back(text);
  }
  return result;
}

/// The policy that the run was trained under, as it was then.
PlacingArguments placing_of(const std::string& run_dir, const TrainedOptions& options) {
  PlacingArguments placing;
  const std::string placement = run_dir + "/placement.json", policy = run_dir + "/policy.toml";
  const bool replaced = sets(options.overrides, "policy");
  if (path_exists(placement)) {
    const Json json = Json::parse(read_file(placement), nullptr, false);
    if (json.is_object() && json.contains("arguments")) {
      const Json& arguments = json["arguments"];
      if (!replaced) placing.place = texts(arguments.value("place", Json()));
      placing.devices = texts(arguments.value("device", Json()));
    }
  }
  if (!replaced && path_exists(policy)) placing.text = read_file(policy, std::size_t{16} << 20);
  placing.place.insert(placing.place.end(), options.place.begin(), options.place.end());
  placing.devices.insert(placing.devices.end(), options.devices.begin(), options.devices.end());
  return placing;
}

[[noreturn]] void refuse(const std::string& file, std::string message, std::string fix) {
  Diagnostic d;
  d.file = file;
  d.message = std::move(message);
  d.fix = std::move(fix);
  throw Error(ErrorKind::usage, std::move(d));
}

TrainedRun open_exported(const std::string& model, const TrainedOptions& options) {
  if (options.config.empty()) {
    refuse(model, "an exported model says nothing of its data",
           "add --config train.toml, or name the run directory instead");
  }
  if (!options.checkpoint.empty())
    refuse(model, "an exported model has no checkpoints", "leave --checkpoint away");
  TrainedRun run;
  run.path = std::filesystem::absolute(model).lexically_normal().string();
  run.config = read_run_config(options.config, options.overrides);
  run.config.model.file = run.path;
  run.shape = std::move(run.config.parameters.shape);
  run.config.parameters = {};  // the file has its rows and values
  run.placing.place = options.place;
  run.placing.devices = options.devices;
  run.vocabulary_stem = std::filesystem::path(run.path).replace_extension("").string() + ".";
  return run;
}

}  // namespace

std::string TrainedRun::text() const {
  return exported() ? "model       " + path : "checkpoint  " + path + " (" + which + ")";
}

void TrainedRun::describe(nlohmann::ordered_json& json) const {
  if (exported()) {
    json["model"] = path;
    return;
  }
  json["checkpoint"] = path;
  json["which"] = which;
  json["step"] = step;
}

TrainedRun open_trained(const std::string& run, const TrainedOptions& options) {
  if (run.ends_with(".onnx")) return open_exported(run, options);
  if (!options.config.empty())
    refuse(options.config, "a run directory has its configuration", "leave --config away");
  TrainedRun trained;
  trained.which = options.checkpoint;
  if (trained.which.empty())
    trained.which = path_exists(run + "/checkpoints/best") ? "best" : "latest";
  FoundCheckpoint found = find_checkpoint(run, trained.which);
  trained.path = found.path;
  trained.step = found.content.position.step;
  trained.content = std::move(found.content);
  if (path_exists(run + "/manifest.json")) trained.which = "as named";
  trained.config = read_run_config(found.run_dir + "/train.resolved.toml", options.overrides);
  trained.shape = trained.config.parameters.shape;
  trained.placing = placing_of(found.run_dir, options);
  trained.vocabulary_stem = found.run_dir + "/";
  return trained;
}

TrainedModel::TrainedModel(TrainedRun run, const std::vector<std::string>& values)
    : run_(std::move(run)),
      engine_(run_.config.threads),
      model_(engine_, run_.config, run_.placing) {
  model_.use_rows([this](const ShapeRule& rule) {
    const std::vector<ShapeRule>& rules = run_.config.parameters.shape;
    const auto same = std::find(rules.rbegin(), rules.rend(), rule);
    return trained_vocabulary_rows(run_.config, run_.content.model, *same);
  });
  model_.keep_values(values);
  parts_ = run_parts(engine_, model_, run_.config);
}

void TrainedModel::load() {
  if (run_.exported()) return;
  restore_states(states_, run_.content);
  run_.content.model.clear();
  run_.content.optimizer.clear();
}

}  // namespace tandem::api
