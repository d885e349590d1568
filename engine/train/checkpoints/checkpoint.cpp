#include "engine/train/checkpoints/checkpoint.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/formats/exchange_paths.h"
#include "engine/formats/files.h"
#include "engine/formats/parallel_jobs.h"
#include "engine/formats/row_shards.h"
#include "engine/formats/run_format.h"
#include "engine/formats/safetensors.h"
#include "engine/graph/error.h"
#include "engine/graph/shard_conversion.h"
#include "engine/runtime/file_pages.h"
#include "engine/train/checkpoints/checkpoint_format.h"
#include "engine/train/graph/loss_scale.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view prefix = "step-";
constexpr std::string_view unfinished = ".new";

bool has_own_files(const TensorSource& tensor, const CheckpointOptions& options) {
  return !tensor.type.shape.empty() && tensor.rows() > 1 &&
         tensor.type.bytes() > options.shard_bytes;
}

// States that live only within a step.
bool is_sum(const std::string& name) {
  return name.ends_with("/gradient_sum") || name.ends_with("/touched_rows");
}

}  // namespace

PartLayout layout_of(const std::string& stem, const std::vector<TensorSource>& tensors,
                     std::map<std::string, std::string> metadata,
                     const CheckpointOptions& options) {
  PartLayout layout{stem, {}, {}, std::move(metadata)};
  for (const TensorSource& tensor : tensors) {
    if (!has_own_files(tensor, options)) {
      layout.small.push_back(tensor);
      continue;
    }
    const std::string name = stem + ".table" + std::to_string(layout.large.size() + 1);
    layout.large.push_back({&tensor, row_shards(tensor, options.shard_bytes, name)});
    layout.metadata[std::string(table_key) + tensor.name] = layout.large.back().shards[0].file;
  }
  return layout;
}

std::string unfinished_name(const std::string& path) { return path + std::string(unfinished); }

std::string checkpoint_name(std::uint64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%08llu", static_cast<unsigned long long>(step));
  return name;
}

std::optional<std::uint64_t> checkpoint_step(const std::string& name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  std::uint64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, step);
  if (error != std::errc() || stop != end || checkpoint_name(step) != name) return std::nullopt;
  return step;
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
    if (is_sum(name) || states.held_by(name) != HeldBy::checkpoint) continue;
    TensorSource source{name, states.type(name), {}, nullptr};
    if (const StateShard* shard = states.shard(name)) {
      source.type = shard->whole;
      sources.shards.emplace(name, *shard);
    } else if (states.has_direct_rows(name)) {
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

// Writes STEM.safetensors and the files of large tensors; adds all of them to `files`.
void write_part(const std::string& path, const PartLayout& part, std::vector<ManifestFile>& files) {
  struct Job {
    const TensorSource* tensor;
    ManifestFile file;
  };
  std::vector<Job> jobs;
  for (const TensorFiles& tensor : part.large) {
    for (const RowShard& rows : tensor.shards)
      jobs.push_back({tensor.source, {rows.file, {}, part.stem, tensor.source->name, rows}});
  }
  parallel_jobs(file_threads(), static_cast<std::int64_t>(jobs.size()), [&](std::int64_t i) {
    jobs[i].file.written = write_row_shard(path, *jobs[i].tensor, jobs[i].file.rows);
  });
  files.push_back(
      {part.file(), write_safetensors(path + "/" + part.file(), part.small, part.metadata)});
  for (Job& job : jobs) files.push_back(std::move(job.file));
}

void write_files(const std::string& path, const CheckpointSources& sources,
                 const CheckpointOptions& options) {
  make_directory(path);
  std::vector<ManifestFile> files;
  write_part(path, layout_of("model", sources.model, weights_metadata(sources.aliases), options),
             files);
  write_part(path, layout_of("optimizer", sources.optimizer, {{"format", "pt"}}, options), files);
  finish_files(path, sources.position, std::move(files));
}

}  // namespace

void finish_files(const std::string& path, const TrainingPosition& position,
                  std::vector<ManifestFile> files) {
  files.push_back({"state.json", write_file(path + "/state.json", position_text(position))});
  if (position.fingerprint)
    files.push_back({fingerprint_file, write_fingerprint(path, *position.fingerprint)});
  Json list = Json::object();
  for (const ManifestFile& file : files) {
    Json& entry = list[file.name];
    entry = {{"bytes", file.written.bytes}, {"sha256", file.written.sha256}};
    if (file.tensor.empty()) continue;
    entry.update({{"part", file.part},
                  {"tensor", file.tensor},
                  {"first_row", file.rows.first},
                  {"rows", file.rows.rows}});
  }
  const Json manifest{{"format", run_format}, {"files", std::move(list)}};
  write_file(path + "/manifest.json", manifest.dump(2) + "\n");
  sync_directory(path);
}

void write_checkpoint(const std::string& folder, const CheckpointSources& sources,
                      const CheckpointOptions& options) {
  assert(sources.shards.empty());
  make_directories(folder);
  const std::string final_path = folder + "/" + checkpoint_name(sources.position.step);
  const std::string path = unfinished_name(final_path);
  remove_all(path);
  try {
    write_files(path, sources, options);
    finish_checkpoint(final_path);
  } catch (...) {  // its room may be what the next one lacks
    try {
      remove_all(path);
    } catch (...) {  // the first failure is the one to tell
    }
    throw;
  }
}

void finish_checkpoint(const std::string& path) {
  const std::string made = unfinished_name(path);
  if (path_exists(path)) {
    exchange_paths(made, path);
    remove_all(made);  // the older one, or this one where they cannot be exchanged
  } else {
    rename_path(made, path);
  }
  sync_directory(std::filesystem::path(path).parent_path().string());
}

std::vector<std::string> list_checkpoints(const std::string& folder) {
  std::vector<std::uint64_t> steps;
  if (!is_directory(folder)) return {};
  for (const std::string& name : list_directory(folder)) {
    if (const auto step = checkpoint_step(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  std::vector<std::string> names;
  for (const std::uint64_t step : steps) names.push_back(checkpoint_name(step));
  return names;
}

void set_broken_checkpoints_aside(const std::string& folder, std::uint64_t step) {
  for (const std::string& name : list_checkpoints(folder)) {
    if (step > 0 && *checkpoint_step(name) <= step) continue;
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
      // Under a name of its own first: what is called step-N is whole.
      const std::string leaving = folder + "/" + names[i] + std::string(unfinished);
      rename_path(folder + "/" + names[i], leaving);
      remove_all(leaving);
      removed = true;
    }
  }
  if (removed) sync_directory(folder);
}

void collect_states(const StateStore& states, CheckpointContent& content) {
  for (const std::string& name : states.names()) {
    if (is_sum(name)) continue;
    assert(states.shard(name) == nullptr);
    const StateKind kind = states.kind(name);
    const bool model = kind == StateKind::parameter || kind == StateKind::buffer;
    (model ? content.model : content.optimizer).push_back({name, states.read(name)});
  }
}

namespace {

// The own rows of a value, in ranges; the pages of mapped files leave as they have been copied.
void write_part_of(StateStore& states, const std::string& name, const StateShard& shard,
                   const HostTensor& value) {
  constexpr std::size_t range_bytes = std::size_t{1} << 20;
  const std::size_t row_bytes = part_row_bytes(shard);
  if (!states.has_direct_rows(name)) return states.write(name, part_of(value, shard));
  parallel_row_ranges(file_threads(), filled_rows(shard), row_bytes, range_bytes,
                      [&](std::int64_t first, std::int64_t count) {
                        std::vector<char> rows(row_bytes * static_cast<std::size_t>(count));
                        copy_part(shard, value.data(), first, count, rows.data());
                        states.write_rows(name, first, count, rows.data());
                      });
  if (is_file_mapping(value.data(), value.bytes())) release_file_pages(value.data(), value.bytes());
}

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

namespace {

/// Whether it belongs to a parameter that the run up to the checkpoint has never trained.
bool is_of_untrained(const std::string& state, const CheckpointContent& content) {
  const std::int64_t taken = taken_steps(content);
  return std::any_of(content.position.missed_steps.begin(), content.position.missed_steps.end(),
                     [&](const auto& missed) {
                       return missed.second == taken && state.starts_with(missed.first + "/");
                     });
}

}  // namespace

std::set<std::string> restore_states(StateStore& states, const CheckpointContent& content) {
  std::map<std::string, const HostTensor*> loaded;
  for (const NamedTensor& t : content.model) loaded[t.name] = &t.tensor;
  for (const NamedTensor& t : content.optimizer) loaded[t.name] = &t.tensor;
  std::vector<Diagnostic> problems;
  std::set<std::string> restored;
  for (const std::string& name : states.names()) {
    if (is_sum(name) || is_loss_scale_state(name)) continue;
    if (states.held_by(name) != HeldBy::checkpoint) continue;
    const auto found = loaded.find(name);
    const bool is_moment = states.kind(name) == StateKind::optimizer;
    if (found == loaded.end() && is_moment && is_of_untrained(name, content)) continue;
    restored.insert(name);
    const StateShard* const shard = states.shard(name);
    const TensorType& type = shard != nullptr ? shard->whole : states.type(name);
    if (found == loaded.end() || found->second->type() != type) {
      Diagnostic d;
      d.path = name;
      d.message = found == loaded.end() ? "the checkpoint does not have this state"
                                        : "the checkpoint has another type for this state";
      d.expected = to_string(type);
      if (found != loaded.end()) d.got = to_string(found->second->type());
      d.fix =
          "model structure, optimizer kinds and averages of weights (optimizer.ema, swa, "
          "lookahead) may "
          "not change on resume";
      problems.push_back(std::move(d));
      continue;
    }
    if (shard != nullptr)
      write_part_of(states, name, *shard, *found->second);
    else
      write_state(states, name, *found->second);
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  return restored;
}

void refuse_unknown_states(const StateStore& states, const CheckpointContent& content) {
  std::vector<Diagnostic> problems;
  for (const NamedTensor& state : content.optimizer) {
    if (states.has(state.name) || is_loss_scale_state(state.name)) continue;
    Diagnostic d;
    d.path = state.name;
    d.message = "the checkpoint has this optimizer state, the configuration does not";
    d.fix =
        "resume with the optimizer kinds of the first run, and its optimizer.ema, swa and "
        "lookahead";
    problems.push_back(std::move(d));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

}  // namespace tandem
