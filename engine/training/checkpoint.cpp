#include "engine/training/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "engine/formats/parallel_jobs.h"
#include "engine/formats/row_shards.h"
#include "engine/formats/safetensors.h"
#include "engine/graph/error.h"
#include "engine/runtime/file_pages.h"
#include "engine/training/loss_scale.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr int format_version = 1;
constexpr std::string_view prefix = "step-";
constexpr std::string_view unfinished = ".new";
constexpr std::string_view table_key = "table:";  // then the tensor's name
constexpr const char *larger = "larger", *smaller = "smaller";
const std::vector<std::string> content_files{"model.safetensors", "optimizer.safetensors",
                                             "state.json"};

Json position_json(const TrainingPosition& p) {
  Json json;
  json["format"] = format_version;
  json["step"] = p.step;
  json["data"] = {{"epoch", p.data.epoch}, {"sample", p.data.sample}};
  json["samples"] = p.samples;
  json["seed"] = p.seed;
  if (p.held_out) json["held_out"] = *p.held_out;
  json["batch_size"] = p.batch_size;
  if (p.best) {
    json["best"] = {{"value", *p.best}, {"step", p.best_step}};
    if (!p.best_metric.empty()) {
      json["best"]["metric"] = p.best_metric;
      json["best"]["better"] = p.larger_is_better ? larger : smaller;
    }
  }
  json["evaluations_without_better"] = p.evaluations_without_better;
  if (p.skipped_in_a_row > 0) json["skipped_in_a_row"] = p.skipped_in_a_row;
  json["finished"] = p.finished;
  if (!p.vocabularies.empty()) json["vocabularies"] = p.vocabularies;
  if (!p.optimizers.empty()) json["optimizers"] = p.optimizers;
  if (!p.functions.empty()) json["functions"] = p.functions;
  if (!p.thawed.empty()) json["thawed"] = p.thawed;
  return json;
}

// Of texts by name; without the key there are none.
std::map<std::string, std::string> texts_of(const Json& json, const char* key) {
  if (!json.contains(key)) return {};
  return json[key].get<std::map<std::string, std::string>>();
}

TrainingPosition position_of(const Json& json) {
  TrainingPosition p;
  p.step = json.at("step");
  p.data.epoch = json.at("data").at("epoch");
  p.data.sample = json.at("data").at("sample");
  p.samples = json.at("samples");
  p.seed = json.at("seed");
  if (json.contains("held_out")) p.held_out = json["held_out"].get<double>();
  p.batch_size = json.at("batch_size");
  if (json.contains("best")) {
    p.best = json["best"].at("value").get<double>();
    p.best_step = json["best"].at("step");
    if (json["best"].contains("metric")) {
      p.best_metric = json["best"]["metric"];
      p.larger_is_better = json["best"].at("better") == larger;
    }
  }
  p.evaluations_without_better = json.at("evaluations_without_better");
  if (json.contains("skipped_in_a_row")) p.skipped_in_a_row = json["skipped_in_a_row"];
  p.finished = json.at("finished");
  p.vocabularies = texts_of(json, "vocabularies");
  p.optimizers = texts_of(json, "optimizers");
  p.functions = texts_of(json, "functions");
  if (json.contains("thawed")) p.thawed = json["thawed"].get<std::map<std::string, bool>>();
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

// Throws where a file is not there, or not what the manifest says.
Json checked_manifest(const std::string& path) {
  const std::string manifest_path = path + "/manifest.json";
  Json manifest = read_json(manifest_path);
  if (!manifest.contains("files")) broken(manifest_path, "no list of files");
  for (const std::string& name : content_files) {
    if (!manifest["files"].contains(name)) broken(manifest_path, "does not list " + name);
  }
  std::vector<std::pair<std::string, const Json*>> files;
  for (const auto& [name, listed] : manifest["files"].items()) {
    if (name.find('/') != std::string::npos) broken(manifest_path, "lists a file elsewhere");
    files.emplace_back(path + "/" + name, &listed);
  }
  std::vector<WrittenFile> found(files.size());
  parallel_jobs(file_threads(), static_cast<std::int64_t>(files.size()), [&](std::int64_t i) {
    const std::string& file = files[i].first;
    if (!path_exists(file)) broken(file, "the checkpoint lacks this file");
    found[i] = hash_file(file);
  });
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto& [file, entry] = files[i];
    const Json& listed = *entry;
    if (found[i].bytes != listed.at("bytes").get<std::uint64_t>()) {
      broken(file, "wrong size", listed["bytes"].dump() + " bytes",
             std::to_string(found[i].bytes) + " bytes");
    }
    if (found[i].sha256 != listed.at("sha256").get<std::string>())
      broken(file, "contents do not match the manifest's hash");
  }
  return manifest;
}

// A tensor that has files of its own.
struct ShardedTensor {
  const TensorSource* source;
  std::vector<RowShard> shards;
};

bool is_sharded(const TensorSource& tensor, const CheckpointOptions& options) {
  return !tensor.type.shape.empty() && tensor.rows() > 1 &&
         tensor.type.bytes() > options.shard_bytes;
}

// Writes STEM.safetensors and the files of large tensors; adds all of them to `files`.
void write_tensors(const std::string& path, const std::string& stem,
                   const std::vector<TensorSource>& tensors,
                   std::map<std::string, std::string> metadata, const CheckpointOptions& options,
                   Json& files) {
  std::vector<TensorSource> whole;
  std::vector<ShardedTensor> sharded;
  for (const TensorSource& tensor : tensors) {
    if (!is_sharded(tensor, options)) {
      whole.push_back(tensor);
      continue;
    }
    const std::string name = stem + ".table" + std::to_string(sharded.size() + 1);
    sharded.push_back({&tensor, row_shards(tensor, options.shard_bytes, name)});
    metadata[std::string(table_key) + tensor.name] = sharded.back().shards[0].file;
  }
  struct Job {
    const ShardedTensor* tensor;
    const RowShard* shard;
    WrittenFile written;
  };
  std::vector<Job> jobs;
  for (const ShardedTensor& tensor : sharded) {
    for (const RowShard& shard : tensor.shards) jobs.push_back({&tensor, &shard, {}});
  }
  parallel_jobs(file_threads(), static_cast<std::int64_t>(jobs.size()), [&](std::int64_t i) {
    jobs[i].written = write_row_shard(path, *jobs[i].tensor->source, *jobs[i].shard);
  });
  const std::string name = stem + ".safetensors";
  const WrittenFile written = write_safetensors(path + "/" + name, whole, metadata);
  files[name] = {{"bytes", written.bytes}, {"sha256", written.sha256}};
  for (const Job& job : jobs) {
    files[job.shard->file] = {{"bytes", job.written.bytes},
                              {"sha256", job.written.sha256},
                              {"part", stem},
                              {"tensor", job.tensor->source->name},
                              {"first_row", job.shard->first},
                              {"rows", job.shard->rows}};
  }
}

// Tensors of one part that have files of their own, in the manifest's order: all those that
// STEM.safetensors names, which has a hash. The manifest has none.
void read_tables(const std::string& path, const std::string& stem, const Json& manifest,
                 const SafetensorsFile& rest, std::vector<NamedTensor>& to) {
  std::vector<std::pair<std::string, std::vector<RowShard>>> tables;
  for (const auto& [file, listed] : manifest["files"].items()) {
    if (!listed.contains("tensor") || listed.at("part").get<std::string>() != stem) continue;
    const std::string name = listed["tensor"];
    if (tables.empty() || tables.back().first != name) tables.emplace_back(name, 0);
    tables.back().second.push_back(
        {file, listed.at("first_row").get<std::int64_t>(), listed.at("rows").get<std::int64_t>()});
  }
  for (const auto& [key, file] : rest.metadata()) {
    if (!key.starts_with(table_key)) continue;
    const std::string name = key.substr(table_key.size());
    const bool is_listed = std::any_of(tables.begin(), tables.end(), [&](const auto& table) {
      return table.first == name && table.second[0].file == file;
    });
    if (!is_listed)
      broken(path + "/manifest.json", "does not list the rows of \"" + name + "\"", file);
  }
  for (const auto& [name, shards] : tables) to.push_back(read_row_shards(path, name, shards));
}

bool is_checkpoint_name(const std::string& name) {
  return name.starts_with(prefix) && !name.ends_with(unfinished);
}

// What lives within a step alone.
bool is_sum(const std::string& name) {
  return name.ends_with("/gradient_sum") || name.ends_with("/touched_rows");
}

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

CheckpointSources sources_of(const CheckpointContent& content) {
  return {content.position, sources_of(content.model), sources_of(content.optimizer),
          content.aliases};
}

CheckpointSources sources_of(const StateStore& states) {
  CheckpointSources sources;
  for (const std::string& name : states.names()) {
    if (is_sum(name)) continue;
    TensorSource source{name, states.type(name), {}, nullptr};
    if (states.has_direct_rows(name)) {
      source.read = [&states, name](std::int64_t first, std::int64_t rows, void* to) {
        states.read_rows(name, first, rows, to);
      };
    } else {  // one copy serves all ranges, as long as they come one after the other
      source.read = [&states, name, row_bytes = source.row_bytes(), all = source.rows(),
                     whole = HostTensor()](std::int64_t first, std::int64_t rows,
                                           void* to) mutable {
        if (first == 0) whole = states.read(name);
        std::memcpy(
            to,
            static_cast<const char*>(whole.data()) + row_bytes * static_cast<std::size_t>(first),
            row_bytes * static_cast<std::size_t>(rows));
        if (first + rows == all) whole = HostTensor();
      };
    }
    const StateKind kind = states.kind(name);
    const bool model = kind == StateKind::parameter || kind == StateKind::buffer;
    (model ? sources.model : sources.optimizer).push_back(std::move(source));
  }
  return sources;
}

void write_checkpoint(const std::string& folder, const CheckpointContent& content,
                      const CheckpointOptions& options) {
  write_checkpoint(folder, sources_of(content), options);
}

namespace {

void write_files(const std::string& path, const CheckpointSources& sources,
                 const CheckpointOptions& options) {
  make_directory(path);
  Json files = Json::object();
  write_tensors(path, "model", sources.model, weights_metadata(sources.aliases), options, files);
  write_tensors(path, "optimizer", sources.optimizer, {{"format", "pt"}}, options, files);
  const WrittenFile position =
      write_file(path + "/state.json", position_json(sources.position).dump(2) + "\n");
  files["state.json"] = {{"bytes", position.bytes}, {"sha256", position.sha256}};
  const Json manifest{{"format", format_version}, {"files", files}};
  write_file(path + "/manifest.json", manifest.dump(2) + "\n");
  sync_directory(path);
}

}  // namespace

void write_checkpoint(const std::string& folder, const CheckpointSources& sources,
                      const CheckpointOptions& options) {
  make_directories(folder);
  const std::string final_path = folder + "/" + checkpoint_name(sources.position.step);
  if (path_exists(final_path)) return;
  const std::string path = final_path + std::string(unfinished);
  remove_all(path);
  try {
    write_files(path, sources, options);
    rename_path(path, final_path);
  } catch (...) {  // its room may be what the next one lacks
    try {
      remove_all(path);
    } catch (...) {  // the first failure is the one to tell
    }
    throw;
  }
  sync_directory(folder);
}

namespace {

/// Throws where the system does not let this process read the folder or a file in it: what they
/// hold is whole for all that is known.
void expect_permission(const std::string& path) {
  const auto expect = [&](const std::string& file, int mode) {
    if (::faccessat(AT_FDCWD, file.c_str(), mode, AT_EACCESS) == 0 || errno != EACCES) return;
    Diagnostic d;
    d.file = file;
    d.message = "the checkpoint cannot be read: permission denied";
    d.fix = "read it as the user that has trained, or let others read it: chmod -R a+rX " + path;
    throw Error(ErrorKind::runtime, std::move(d));
  };
  expect(path, R_OK | X_OK);
  if (!is_directory(path)) return;
  for (const std::string& name : list_directory(path)) expect(path + "/" + name, R_OK);
}

}  // namespace

CheckpointContent read_checkpoint(const std::string& path) {
  expect_permission(path);
  if (!is_directory(path)) broken(path, "there is no checkpoint here");
  CheckpointContent content;
  Json manifest;
  try {
    manifest = checked_manifest(path);
    content.position = position_of(read_json(path + "/state.json"));
  } catch (const Json::exception& e) {
    broken(path, std::string("unreadable manifest or state: ") + e.what());
  }
  const SafetensorsFile model(path + "/model.safetensors");
  content.model = model.tensors();
  for (const auto& [key, value] : model.metadata()) {
    if (key.starts_with("alias:")) content.aliases[key.substr(6)] = value;
  }
  const SafetensorsFile optimizer(path + "/optimizer.safetensors");
  content.optimizer = optimizer.tensors();
  try {
    read_tables(path, "model", manifest, model, content.model);
    read_tables(path, "optimizer", manifest, optimizer, content.optimizer);
  } catch (const Json::exception& e) {
    broken(path + "/manifest.json", std::string("unreadable list of rows: ") + e.what());
  }
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
    expect_permission(folder + "/" + *name);
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

void remove_unfinished_checkpoints(const std::string& folder) {
  for (const std::string& name : list_directory(folder)) {
    if (name.starts_with(prefix) && name.ends_with(unfinished)) remove_all(folder + "/" + name);
  }
}

void prune_checkpoints(const std::string& folder, std::int64_t keep, std::uint64_t best) {
  remove_unfinished_checkpoints(folder);
  bool removed = false;
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

namespace {

// Large values by several threads; the pages of mapped files leave as they have been copied.
void write_state(StateStore& states, const std::string& name, const HostTensor& value) {
  constexpr std::size_t range_bytes = std::size_t{8} << 20;
  if (value.bytes() <= range_bytes || value.shape().empty() || !states.has_direct_rows(name)) {
    states.write(name, value);
    return;
  }
  const std::int64_t rows = value.shape()[0];
  const std::size_t row_bytes = value.bytes() / static_cast<std::size_t>(rows);
  parallel_row_ranges(
      file_threads(), rows, row_bytes, range_bytes, [&](std::int64_t first, std::int64_t count) {
        const char* from =
            static_cast<const char*>(value.data()) + row_bytes * static_cast<std::size_t>(first);
        const std::size_t bytes = row_bytes * static_cast<std::size_t>(count);
        states.write_rows(name, first, count, from);
        if (is_file_mapping(from, bytes)) release_file_pages(from, bytes);
      });
}

}  // namespace

void restore_states(StateStore& states, const CheckpointContent& content) {
  std::map<std::string, const HostTensor*> loaded;
  for (const NamedTensor& t : content.model) loaded[t.name] = &t.tensor;
  for (const NamedTensor& t : content.optimizer) loaded[t.name] = &t.tensor;
  std::vector<Diagnostic> problems;
  for (const std::string& name : states.names()) {
    if (is_sum(name) || is_loss_scale_state(name)) continue;
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
    write_state(states, name, *found->second);
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

void refuse_unknown_states(const StateStore& states, const CheckpointContent& content) {
  std::vector<Diagnostic> problems;
  for (const NamedTensor& state : content.optimizer) {
    if (states.has(state.name) || is_loss_scale_state(state.name)) continue;
    Diagnostic d;
    d.path = state.name;
    d.message = "the checkpoint has this optimizer state, the configuration does not";
    d.fix = "resume with the optimizer kinds of the first run";
    problems.push_back(std::move(d));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

}  // namespace tandem
