#include "engine/train/loop/run_start.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "engine/config/keys/changed_keys.h"
#include "engine/data/id_functions.h"
#include "engine/train/averages/weights_in_use.h"
#include "engine/train/checkpoints/frozen_states.h"
#include "engine/train/checkpoints/resume_checks.h"
#include "engine/train/graph/loss_scale.h"
#include "engine/train/group/gathered.h"
#include "engine/train/loop/rank_start.h"
#include "engine/train/updates/parameter_choice.h"

namespace tandem {
namespace {

constexpr std::string_view resolved_config_file = "train.resolved.toml";

std::string base_name(const RunConfig& config) {
  return config.name.empty() ? std::filesystem::path(config.file).stem().string() : config.name;
}

std::string runs_folder(const RunConfig& config) {
  return (std::filesystem::path(config.file).parent_path() / "runs").string();
}

/// The resolved configuration in a file, with the paths of now if the project was moved.
std::string resolved_now(const std::string& path) {
  std::string text = read_file(path);
  try {
    return to_toml(parse_run_config(text, path));
  } catch (const Error&) {
    return text;
  }
}

}  // namespace

std::shared_ptr<const void> RunStart::start(const std::string& resume_from, const Files& files,
                                            Saver& saver, Steps& steps) {
  std::shared_ptr<const void> lock;
  const RunConfig& config = run_.config;
  const std::string path = from_rank_0(run_.ranks(), "run directory", [&] {
    if (resume_from.empty()) {
      run_.directory = std::make_unique<RunDirectory>(
          RunDirectory::create(config.run_dir, runs_folder(config), base_name(config)));
      saver.warn_of_room(run_.directory->path());
    }
    const std::string& chosen = run_.directory ? run_.directory->path() : resume_from;
    lock = RunDirectory::lock(chosen);
    observer_.chose_run_dir(chosen);
    return chosen;
  });
  prove_shared(run_, path);
  if (run_.shards_states()) {
    guard_.share_infinite();
    hash_sharded_frozen(run_);
  }
  if (!resume_from.empty())
    resume(path, saver, steps);
  else if (run_.rank() > 0)
    run_.directory = std::make_unique<RunDirectory>(RunDirectory::follow(path));
  run_.runner->compare_ranks();
  refuse_other_states(run_);
  on_rank_0_first(run_.ranks(), "logs", [&] { log_.open_formats(); });
  if (run_.rank() == 0) write_files(files);
  return lock;
}

void RunStart::write_files(const Files& files) {
  // Before the record of this start: it says where the project was until now.
  for (const auto& [name, content] : files) {
    const std::string there = run_.directory->path() + "/" + name;
    if (name != resolved_config_file || !path_exists(there)) continue;
    for (const std::string& change : changed_keys(resolved_now(there), content)) {
      if (change.starts_with("run_dir: ")) continue;  // it has a number, or was moved
      log_.say("the configuration has changed since the last start: " + change);
    }
  }
  // The record comes first: a run that is killed here is resumed with it.
  observer_.started(run_.directory->path());
  for (const auto& [name, content] : files) run_.directory->write_file(name, content);
  run_.directory->begin();
  log_.write_notes();
}

void RunStart::try_start(const std::string& resume_from, Saver& saver) {
  const RunConfig& config = run_.config;
  if (resume_from.empty()) {
    const std::string runs = runs_folder(config);
    RunDirectory::try_create(config.run_dir, runs, base_name(config));
    saver.warn_of_room(config.run_dir.empty() ? runs : config.run_dir);
    return;
  }
  const std::shared_ptr<const void> lock = RunDirectory::lock(resume_from);
  std::vector<std::string> messages;
  std::string path;
  std::optional<CheckpointContent> content = newest_checkpoint(
      resume_from + "/checkpoints", messages, &path, guard_.allowed_in_checkpoint());
  if (content) take_over(*content, path, resume_from, messages);
  for (const std::string& message : messages) log_.say(message);
  RunDirectory::try_resume(resume_from);
}

FingerprintPtr RunStart::compared(const TrainingPosition& saved, const std::string& path,
                                  std::vector<std::string>& messages) const {
  const RunParts& parts = run_.parts;
  if (!parts.fingerprint) return nullptr;
  const Fingerprint& before = fingerprint_in(saved.fingerprint, path);
  Fingerprint now = *parts.fingerprint;
  now.accepted = before.accepted;
  const std::string since = fmt::format("step {} of the run was saved", saved.step);
  const ChangedPart model{"model", run_.config.model.file, since,
                          "train a changed model in a new run, without --resume"};
  const ChangedPart samples{"data", run_.config.file, since,
                            "train on other data in a new run, without --resume"};
  for (const std::string& accepted :
       {accept_or_refuse(first_difference(before.model, now.model), model, parts.accept_changes),
        accept_or_refuse(first_difference(before.data, now.data), samples, parts.accept_changes)}) {
    if (accepted.empty()) continue;
    now.accepted.push_back({saved.step, accepted});
    messages.push_back(accepted);
  }
  return std::make_shared<const Fingerprint>(std::move(now));
}

std::vector<NamedTensor> RunStart::take_over(CheckpointContent& content, const std::string& path,
                                             const std::string& run_dir,
                                             std::vector<std::string>& messages) {
  const RunConfig& config = run_.config;
  TrainingPosition& saved = content.position;
  const TrainingPosition& now = run_.position;
  const std::int64_t samples = run_.data.epoch_samples();
  refuse_other_split(saved, now, config);
  refuse_other_functions(saved.functions, config, "run", "start a new run without --resume");
  saved.fingerprint = compared(saved, path, messages);
  refuse_other_place(saved, samples, run_.length.steps_per_epoch, path);
  if (run_.data.buckets) refuse_other_buckets(saved, config);
  refuse_other_thaws(saved, config, path);
  refuse_other_best(saved, config, run_dir, path);
  if (saved.optimizers != now.optimizers)
    refuse_other_kinds(saved.optimizers, config, run_.forward());
  run_.length = run_length(config, samples, {static_cast<std::int64_t>(saved.step), saved.data});
  // The states of its last step: some appear when frozen parameters thaw.
  run_.runner->prepare(std::max<std::uint64_t>(saved.step, 1) - 1, run_.length,
                       {saved.thawed, taken_steps(content), saved.missed_steps});
  refuse_other_frozen(without_unknown(saved.frozen, run_.states, now.frozen), now.frozen, config,
                      path);
  const std::set<std::string> restored = restore_states(run_.states, content);
  std::vector<NamedTensor> carried =
      restore_loss_scale(run_.states, config.precision, content, path);
  if (run_.states.has(skipped_steps_state)) {
    const std::int64_t skipped = run_.states.read(skipped_steps_state).as<std::int64_t>()[0];
    refuse_more_skipped(saved, skipped, path);
    check_.resume(skipped, saved.skipped_in_a_row);
  }
  initialise_averages(run_.states, restored);
  if (config.parameters.freeze.empty()) refuse_unknown_states(run_.states, content);
  return carried;
}

void RunStart::continue_after(const TrainingPosition& saved) {
  TrainingPosition& position = run_.position;
  const TrainingPosition configured = std::exchange(position, saved);
  position.held_out = configured.held_out;
  position.batch_size = configured.batch_size;
  go_on_with(configured.batches.back(), position);
  position.vocabularies = configured.vocabularies;
  position.optimizers = configured.optimizers;
  position.functions = configured.functions;
  position.frozen = configured.frozen;
  run_.runner->schedules().restore(position.plateaus);
}

void RunStart::resume(const std::string& run_dir, Saver& saver, Steps& steps) {
  std::vector<std::string> messages;
  std::string path;
  const std::string folder = run_dir + "/checkpoints";
  std::vector<NamedTensor> carried;
  std::optional<CheckpointContent> content =
      newest_checkpoint(folder, messages, &path, guard_.allowed_in_checkpoint(), run_.ranks());
  on_all_ranks(run_.ranks(), "checkpoint", [&] {
    if (content) carried = take_over(*content, path, run_dir, messages);
  });
  const std::uint64_t step = content ? content->position.step : 0;
  on_rank_0_first(run_.ranks(), "metrics", [&] {
    run_.directory =
        std::make_unique<RunDirectory>(run_.rank() == 0 ? RunDirectory::resume(run_dir, step)
                                                        : RunDirectory::follow(run_dir, step));
  });
  const std::optional<std::uint64_t> evaluated = run_.directory->evaluated_step();
  evaluation_.resume(evaluated);
  for (const std::string& message : messages) log_.say(message);
  if (run_.rank() == 0) {
    remove_unfinished_checkpoints(run_.directory->checkpoints());
    set_broken_checkpoints_aside(run_.directory->checkpoints(), step);
  }
  if (!content) {
    log_.say("no whole checkpoint in " + run_dir + ": starting from the beginning");
    return;
  }
  const std::int64_t batch_size = run_.config.batch_size;
  if (content->position.batch_size != batch_size) {
    log_.say("batch_size changed from " + std::to_string(content->position.batch_size) + " to " +
             std::to_string(batch_size) +
             (run_.length.is_limited()
                  ? ": the run ends at step " + std::to_string(run_.length.steps)
                  : ""));
  }
  continue_after(content->position);
  saver.resume(saver.best().resume(evaluated), std::move(carried));
  steps.set_last_loss(run_.directory->resumed_loss().value_or(steps.last_loss()));
  const std::string at = std::to_string(run_.position.step);
  log_.say("resumed at step " + at);
  if (run_.is_at_end()) {
    log_.say("nothing left to do: the run is at step " + at + " of " +
             std::to_string(run_.length.steps) + "; it continues with more steps or epochs");
  } else if (saver.best().patience_has_run_out()) {
    log_.say("nothing left to do: " + saver.best().not_improved() +
             "; it continues with a larger eval.patience, 0 or another eval.best");
  }
}

}  // namespace tandem
