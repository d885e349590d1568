#include "engine/training/checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "engine/formats/safetensors.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr int format_version = 1;
constexpr std::string_view prefix = "step-";
constexpr std::string_view unfinished = ".new";
const std::vector<std::string> content_files{"model.safetensors", "optimizer.safetensors",
                                             "state.json"};

Json position_json(const TrainingPosition& p) {
  Json json;
  json["format"] = format_version;
  json["step"] = p.step;
  json["data"] = {{"epoch", p.data.epoch}, {"sample", p.data.sample}};
  json["samples"] = p.samples;
  json["seed"] = p.seed;
  json["batch_size"] = p.batch_size;
  if (p.best) json["best"] = {{"value", *p.best}, {"step", p.best_step}};
  json["evaluations_without_better"] = p.evaluations_without_better;
  json["finished"] = p.finished;
  return json;
}

TrainingPosition position_of(const Json& json) {
  TrainingPosition p;
  p.step = json.at("step");
  p.data.epoch = json.at("data").at("epoch");
  p.data.sample = json.at("data").at("sample");
  p.samples = json.at("samples");
  p.seed = json.at("seed");
  p.batch_size = json.at("batch_size");
  if (json.contains("best")) {
    p.best = json["best"].at("value").get<double>();
    p.best_step = json["best"].at("step");
  }
  p.evaluations_without_better = json.at("evaluations_without_better");
  p.finished = json.at("finished");
  return p;
}

[[noreturn]] void broken(const std::string& file, const std::string& message,
                         const std::string& expected = "", const std::string& got = "") {
  Diagnostic d;
  d.file = file;
  d.message = message;
  d.expected = expected;
  d.got = got;
  throw Error(ErrorKind::data, std::move(d));
}

Json read_json(const std::string& path) {
  if (!path_exists(path)) broken(path, "the checkpoint lacks this file");
  Json json = Json::parse(read_file(path, 64u << 20), nullptr, false);
  if (json.is_discarded()) broken(path, "not valid JSON");
  return json;
}

void check_manifest(const std::string& path) {
  const std::string manifest_path = path + "/manifest.json";
  const Json manifest = read_json(manifest_path);
  if (!manifest.contains("files")) broken(manifest_path, "no list of files");
  for (const std::string& name : content_files) {
    const std::string file = path + "/" + name;
    if (!manifest["files"].contains(name)) broken(manifest_path, "does not list " + name);
    if (!path_exists(file)) broken(file, "the checkpoint lacks this file");
    const WrittenFile found = hash_file(file);
    const Json& listed = manifest["files"][name];
    if (found.bytes != listed.at("bytes").get<std::uint64_t>()) {
      broken(file, "wrong size", listed["bytes"].dump() + " bytes",
             std::to_string(found.bytes) + " bytes");
    }
    if (found.sha256 != listed.at("sha256").get<std::string>())
      broken(file, "contents do not match the manifest's hash");
  }
}

bool is_checkpoint_name(const std::string& name) {
  return name.starts_with(prefix) && !name.ends_with(unfinished);
}

bool is_sum(const std::string& name) { return name.ends_with("/gradient_sum"); }

}  // namespace

std::string checkpoint_name(std::uint64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%08llu", static_cast<unsigned long long>(step));
  return name;
}

std::map<std::string, std::string> weights_metadata(
    const std::map<std::string, std::string>& aliases) {
  std::map<std::string, std::string> metadata{{"format", "pt"}};
  for (const auto& [alias, name] : aliases) metadata["alias:" + alias] = name;
  return metadata;
}

void write_checkpoint(const std::string& folder, const CheckpointContent& content) {
  make_directories(folder);
  const std::string final_path = folder + "/" + checkpoint_name(content.position.step);
  if (path_exists(final_path)) return;
  const std::string path = final_path + std::string(unfinished);
  remove_all(path);
  make_directory(path);
  Json files = Json::object();
  auto record = [&](const std::string& name, const WrittenFile& written) {
    files[name] = {{"bytes", written.bytes}, {"sha256", written.sha256}};
  };
  record("model.safetensors", write_safetensors(path + "/model.safetensors", content.model,
                                                weights_metadata(content.aliases)));
  record("optimizer.safetensors",
         write_safetensors(path + "/optimizer.safetensors", content.optimizer, {{"format", "pt"}}));
  record("state.json",
         write_file(path + "/state.json", position_json(content.position).dump(2) + "\n"));
  const Json manifest{{"format", format_version}, {"files", files}};
  write_file(path + "/manifest.json", manifest.dump(2) + "\n");
  sync_directory(path);
  rename_path(path, final_path);
  sync_directory(folder);
}

CheckpointContent read_checkpoint(const std::string& path) {
  if (!is_directory(path)) broken(path, "there is no checkpoint here");
  CheckpointContent content;
  try {
    check_manifest(path);
    content.position = position_of(read_json(path + "/state.json"));
  } catch (const Json::exception& e) {
    broken(path, std::string("unreadable manifest or state: ") + e.what());
  }
  const SafetensorsFile model(path + "/model.safetensors");
  content.model = model.tensors();
  for (const auto& [key, value] : model.metadata()) {
    if (key.starts_with("alias:")) content.aliases[key.substr(6)] = value;
  }
  content.optimizer = SafetensorsFile(path + "/optimizer.safetensors").tensors();
  return content;
}

std::vector<std::string> list_checkpoints(const std::string& folder) {
  std::vector<std::string> names;
  if (!is_directory(folder)) return names;
  for (const std::string& name : list_directory(folder)) {
    if (is_checkpoint_name(name)) names.push_back(name);
  }
  return names;  // sorted: numbers are zero-padded
}

std::optional<CheckpointContent> newest_checkpoint(const std::string& folder,
                                                   std::vector<std::string>& messages,
                                                   std::string* path) {
  std::vector<std::string> names = list_checkpoints(folder);
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    try {
      CheckpointContent content = read_checkpoint(folder + "/" + *name);
      if (path != nullptr) *path = folder + "/" + *name;
      return content;
    } catch (const Error& e) {
      messages.push_back(std::string("checkpoint ") + *name +
                         " is broken and is not used: " + e.what());
    }
  }
  return std::nullopt;
}

void set_broken_checkpoints_aside(const std::string& folder, std::uint64_t step) {
  for (const std::string& name : list_checkpoints(folder)) {
    if (step > 0 && name <= checkpoint_name(step)) continue;
    const std::string aside = folder + "/broken-" + name;
    remove_all(aside);
    rename_path(folder + "/" + name, aside);
    sync_directory(folder);
  }
}

void prune_checkpoints(const std::string& folder, std::int64_t keep, std::uint64_t best) {
  bool removed = false;
  for (const std::string& name : list_directory(folder)) {
    if (name.starts_with(prefix) && name.ends_with(unfinished)) {
      remove_all(folder + "/" + name);
      removed = true;
    }
  }
  const std::vector<std::string> names = list_checkpoints(folder);
  if (keep > 0 && names.size() > static_cast<std::size_t>(keep)) {
    for (std::size_t i = 0; i + keep < names.size(); ++i) {
      if (best > 0 && names[i] == checkpoint_name(best)) continue;
      remove_all(folder + "/" + names[i]);
      removed = true;
    }
  }
  if (removed) sync_directory(folder);
}

void collect_states(const StateStore& states, CheckpointContent& content) {
  for (const std::string& name : states.names()) {
    if (is_sum(name)) continue;
    const StateKind kind = states.kind(name);
    const bool model = kind == StateKind::parameter || kind == StateKind::buffer;
    (model ? content.model : content.optimizer).push_back({name, states.read(name)});
  }
}

void restore_states(StateStore& states, const CheckpointContent& content) {
  std::map<std::string, const HostTensor*> loaded;
  for (const NamedTensor& t : content.model) loaded[t.name] = &t.tensor;
  for (const NamedTensor& t : content.optimizer) loaded[t.name] = &t.tensor;
  std::vector<Diagnostic> problems;
  for (const std::string& name : states.names()) {
    if (is_sum(name)) continue;
    const auto found = loaded.find(name);
    if (found == loaded.end() || found->second->type() != states.type(name)) {
      Diagnostic d;
      d.path = name;
      d.message = found == loaded.end() ? "the checkpoint does not have this state"
                                        : "the checkpoint has another type for this state";
      d.expected = to_string(states.type(name));
      if (found != loaded.end()) d.got = to_string(found->second->type());
      d.fix = "model structure and optimizer kinds may not change on resume";
      problems.push_back(std::move(d));
      continue;
    }
    states.write(name, *found->second);
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

void refuse_unknown_states(const StateStore& states, const CheckpointContent& content) {
  std::vector<Diagnostic> problems;
  for (const NamedTensor& state : content.optimizer) {
    if (states.has(state.name)) continue;
    Diagnostic d;
    d.path = state.name;
    d.message = "the checkpoint has this optimizer state, the configuration does not";
    d.fix = "resume with the optimizer kinds of the first run";
    problems.push_back(std::move(d));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

}  // namespace tandem
