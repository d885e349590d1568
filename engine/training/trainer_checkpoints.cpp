// How a training starts in its run directory, saves and resumes.
#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "engine/metrics/metric.h"
#include "engine/training/averages/weights_in_use.h"
#include "engine/training/checkpoints/best_measures.h"
#include "engine/training/checkpoints/checkpoint_room.h"
#include "engine/training/checkpoints/frozen_states.h"
#include "engine/training/checkpoints/rank_checkpoint.h"
#include "engine/training/checkpoints/resume_checks.h"
#include "engine/training/config/changed_keys.h"
#include "engine/training/data/id_functions.h"
#include "engine/training/parameter_choice.h"
#include "engine/training/trainer_state.h"

namespace tandem {
namespace {

constexpr std::string_view resolved_config_file = "train.resolved.toml";

std::string base_name(const RunConfig& config) {
  return config.name.empty() ? std::filesystem::path(config.file).stem().string() : config.name;
}

std::string runs_folder(const RunConfig& config) {
  return (std::filesystem::path(config.file).parent_path() / "runs").string();
}

}  // namespace

std::shared_ptr<const void> Training::Impl::start(
    const std::string& resume_from, const std::vector<std::pair<std::string, std::string>>& files) {
  std::shared_ptr<const void> lock;
  const std::string path = from_rank_0(parts.ranks.get(), "run directory", [&] {
    if (resume_from.empty()) {
      directory = std::make_unique<RunDirectory>(
          RunDirectory::create(config.run_dir, runs_folder(config), base_name(config)));
      warn_of_room(directory->path());
    }
    const std::string& chosen = directory ? directory->path() : resume_from;
    lock = RunDirectory::lock(chosen);
    if (hooks.on_run_dir) hooks.on_run_dir(chosen);
    return chosen;
  });
  if (parts.ranks) prove_shared(path);
  if (has_parts()) {
    share_infinite();
    hash_shared_frozen();
  }
  if (!resume_from.empty())
    resume(path);
  else if (rank() > 0)
    directory = std::make_unique<RunDirectory>(RunDirectory::follow(path));
  runner->compare_ranks();
  if (parts.ranks) refuse_other_states();
  on_rank_0_first(parts.ranks.get(), "logs", [&] { open_logs(); });
  if (rank() > 0) return lock;
  // Before the record of this start: it says where the project was until now.
  for (const auto& [name, content] : files) {
    const std::string there = directory->path() + "/" + name;
    if (name != resolved_config_file || !path_exists(there)) continue;
    for (const std::string& change : changed_keys(read_file(there), content)) {
      if (change.starts_with("run_dir: ")) continue;  // it has a number, or was moved
      say("the configuration has changed since the last start: " + change);
    }
  }
  // The record comes first: a run that is killed here is resumed with it.
  if (hooks.on_start) hooks.on_start(directory->path());
  for (const auto& [name, content] : files) directory->write_file(name, content);
  directory->begin();
  for (const std::string& note : notes) directory->log_text(note);
  notes.clear();
  return lock;
}

FingerprintPtr Training::Impl::compared(const TrainingPosition& saved, const std::string& path,
                                        std::vector<std::string>& messages) const {
  if (!parts.fingerprint) return nullptr;
  const Fingerprint& before = fingerprint_in(saved.fingerprint, path);
  Fingerprint now = *parts.fingerprint;
  now.accepted = before.accepted;
  const std::string since = fmt::format("step {} of the run was saved", saved.step);
  const ChangedPart model{"model", config.model.file, since,
                          "train a changed model in a new run, without --resume"};
  const ChangedPart samples{"data", config.file, since,
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

void Training::try_start(const std::string& resume_from) {
  Impl& my = *impl_;
  if (resume_from.empty()) {
    const std::string runs = runs_folder(my.config);
    RunDirectory::try_create(my.config.run_dir, runs, base_name(my.config));
    my.warn_of_room(my.config.run_dir.empty() ? runs : my.config.run_dir);
    return;
  }
  const std::shared_ptr<const void> lock = RunDirectory::lock(resume_from);
  std::vector<std::string> messages;
  std::string path;
  std::optional<CheckpointContent> content =
      newest_checkpoint(resume_from + "/checkpoints", messages, &path, my.what_a_save_allows());
  if (content) my.take_over(*content, path, resume_from, messages);
  for (const std::string& message : messages) my.say(message);
  RunDirectory::try_resume(resume_from);
}

void Training::Impl::warn_of_room(const std::string& folder) {
  const CheckpointSources checkpoint = sources();
  std::uint64_t bytes = 0;
  for (const std::vector<TensorSource>* tensors : {&checkpoint.model, &checkpoint.optimizer}) {
    for (const TensorSource& tensor : *tensors) bytes += tensor.type.bytes();
  }
  const std::int64_t kept = std::max<std::int64_t>(config.checkpoint.keep, 1);
  const std::string warning = room_warning(free_bytes(folder), bytes, kept);
  if (!warning.empty()) say("warning    " + warning);
}

MayBeInfinite Training::Impl::what_a_save_allows() const {
  return [this](const std::string& name) { return !states.has(name) || infinite.contains(name); };
}

void Training::Impl::take_over(CheckpointContent& content, const std::string& path,
                               const std::string& run_dir, std::vector<std::string>& messages) {
  refuse_other_split(content.position, position, config);
  refuse_other_functions(content.position.functions, config, "run",
                         "start a new run without --resume");
  content.position.fingerprint = compared(content.position, path, messages);
  refuse_other_place(content.position, data.epoch_samples(), length.steps_per_epoch, path);
  if (data.buckets) refuse_other_buckets(content.position, config);
  refuse_other_thaws(content.position, config, path);
  refuse_other_best(content.position, config, run_dir, path);
  if (content.position.optimizers != position.optimizers)
    refuse_other_kinds(content.position.optimizers, config, forward());
  length = run_length(config, data.epoch_samples(),
                      {static_cast<std::int64_t>(content.position.step), content.position.data});
  // The states of its last step: some appear when frozen parameters thaw.
  runner->prepare(std::max<std::uint64_t>(content.position.step, 1) - 1, length,
                  {content.position.thawed, taken_steps(content), content.position.missed_steps});
  refuse_other_frozen(without_unknown(content.position.frozen, states, position.frozen),
                      position.frozen, config, path);
  const std::set<std::string> restored = restore_states(states, content);
  carried = restore_loss_scale(states, config.precision, content, path);
  if (states.has(skipped_steps_state)) {
    const std::int64_t skipped = states.read(skipped_steps_state).as<std::int64_t>()[0];
    refuse_more_skipped(content.position, skipped, path);
    scale_watch.start(skipped, content.position.skipped_in_a_row);
  }
  initialise_averages(states, restored);
  if (config.parameters.freeze.empty()) refuse_unknown_states(states, content);
}

void Training::Impl::resume(const std::string& run_dir) {
  std::vector<std::string> messages;
  std::string path;
  const std::string folder = run_dir + "/checkpoints";
  std::optional<CheckpointContent> content =
      newest_checkpoint(folder, messages, &path, what_a_save_allows(), parts.ranks.get());
  on_all_ranks(parts.ranks.get(), "checkpoint", [&] {
    if (content) take_over(*content, path, run_dir, messages);
  });
  const std::uint64_t step = content ? content->position.step : 0;
  on_rank_0_first(parts.ranks.get(), "metrics", [&] {
    directory = std::make_unique<RunDirectory>(rank() == 0 ? RunDirectory::resume(run_dir, step)
                                                           : RunDirectory::follow(run_dir, step));
  });
  evaluated_step = directory->evaluated_step();
  for (const std::string& message : messages) say(message);
  if (rank() == 0) {
    remove_unfinished_checkpoints(directory->checkpoints());
    set_broken_checkpoints_aside(directory->checkpoints(), step);
  }
  if (!content) {
    say("no whole checkpoint in " + run_dir + ": starting from the beginning");
    return;
  }
  if (content->position.batch_size != config.batch_size) {
    say("batch_size changed from " + std::to_string(content->position.batch_size) + " to " +
        std::to_string(config.batch_size) +
        (length.is_limited() ? ": the run ends at step " + std::to_string(length.steps) : ""));
  }
  const TrainingPosition configured = std::exchange(position, content->position);
  position.held_out = configured.held_out;
  position.batch_size = configured.batch_size;
  go_on_with(configured.batches.back(), position);
  position.vocabularies = configured.vocabularies;
  position.optimizers = configured.optimizers;
  position.functions = configured.functions;
  position.frozen = configured.frozen;
  runner->schedules().restore(position.plateaus);
  resume_best();
  saved_step = position.step;
  logged_samples = position.samples;
  last_loss = directory->resumed_loss().value_or(last_loss);
  say("resumed at step " + std::to_string(position.step));
  if (position.step >= static_cast<std::uint64_t>(length.steps)) {
    say("nothing left to do: the run is at step " + std::to_string(position.step) + " of " +
        std::to_string(length.steps) + "; it goes on with more steps or epochs");
  } else if (patience_has_run_out()) {
    say("nothing left to do: " + not_improved() +
        "; it goes on with a larger eval.patience, 0 or another eval.best");
  }
}

bool Training::Impl::best_is_of_this_metric() const {
  const std::string& metric = config.eval.best;
  return position.best_metric == metric &&
         position.larger_is_better == (better_of(config.eval.metrics, metric) == Better::larger) &&
         position.best_measures == best_measures(config);
}

void Training::Impl::resume_best() {
  bool is_measured_anew = false;  // metrics.jsonl has other values under the same name
  if (position.best && !best_is_of_this_metric()) {
    const std::string before = position.best_metric;
    const std::string now = config.eval.best.empty() ? "none" : config.eval.best;
    is_measured_anew = before == now;
    say((is_measured_anew ? "what eval.best (" + now + ") measures changed"
                          : "eval.best changed from " + before + " to " + now) +
        ": best and eval.patience start anew");
    position.best.reset();
    position.best_step = 0;
    position.evaluations_without_better = 0;
  }
  if (evaluated_step == position.step && position.evaluated < position.step) {
    // The evaluation came after the save: it was interrupted, made up for, and then the run was
    // killed.
    position.evaluated = position.step;
    saved_is_behind = true;
    const std::string& metric = config.eval.best;
    if (const auto value = metric.empty() || is_measured_anew
                               ? std::nullopt
                               : directory->evaluated(position.step, metric))
      take_in(*value);
    std::vector<std::pair<std::string, double>> values;
    std::vector<std::string> names{"loss"};
    for (const MetricConfig& one : config.eval.metrics) names.push_back(one.name);
    for (const std::string& name : names) {
      if (const auto value = directory->evaluated(position.step, name))
        values.emplace_back(name, *value);
    }
    take_in(values);
  }
  if (position.best)
    write_best();
  else if (rank() == 0)
    remove_all(directory->checkpoints() + "/best");
}

void Training::Impl::take_in(double value) {
  const bool larger_is_better = better_of(config.eval.metrics, config.eval.best) == Better::larger;
  const bool better =
      !position.best || (larger_is_better ? value > *position.best : value < *position.best);
  if (!better) {
    ++position.evaluations_without_better;
    return;
  }
  position.best = value;
  position.best_step = position.step;
  position.best_metric = config.eval.best;
  position.larger_is_better = larger_is_better;
  position.best_measures = best_measures(config);
  position.evaluations_without_better = 0;
}

void Training::Impl::take_in(const std::vector<std::pair<std::string, double>>& values) {
  for (const std::string& said : runner->schedules().take_in(config.eval.metrics, values))
    say(said);
}

void Training::Impl::write_best() {
  directory->write_file("checkpoints/best", checkpoint_name(position.best_step) + "\n");
}

bool Training::Impl::patience_has_run_out() const {
  return evaluation && config.eval.patience > 0 &&
         position.evaluations_without_better >= config.eval.patience;
}

std::string Training::Impl::not_improved() const {
  return fmt::format("{} has not improved for {} evaluations, at step {}", config.eval.best,
                     position.evaluations_without_better, position.step);
}

void Training::Impl::save(bool finished, bool keep_all) {
  const bool is_saved = saved_step == position.step && position.step > 0;
  if (is_saved && !saved_is_behind) return;
  position.finished = finished;
  refuse_bad_states();
  CheckpointOptions options;
  options.shard_bytes = static_cast<std::uint64_t>(config.checkpoint.shard_mib) << 20;
  const CheckpointSources all = sources();
  if (!all.shards.empty()) {
    RowExchange exchange(states, *parts.devices[0]);
    write_rank_checkpoint(directory->checkpoints(), all, options, *parts.ranks, exchange);
  }
  on_all_ranks(parts.ranks.get(), "checkpoint", [&] {
    if (rank() > 0) return;
    if (all.shards.empty()) write_checkpoint(directory->checkpoints(), all, options);
    if (position.best_step == position.step) write_best();  // before the one that it names goes
    prune_checkpoints(directory->checkpoints(), keep_all ? 0 : config.checkpoint.keep,
                      position.best_step);
  });
  saved_step = position.step;
  saved_is_behind = false;
  if (!config.log.histograms_every && !is_saved) log_histograms();
}

CheckpointSources Training::Impl::sources() const {
  CheckpointSources sources = sources_of(states);
  sources.position = position;
  const FrozenSoFar frozen = runner->frozen_so_far();
  sources.position.thawed = frozen.thawed;
  sources.position.missed_steps = frozen.missed_steps;
  sources.position.plateaus = runner->schedules().plateaus();
  if (parts.aliases) sources.aliases = parts.aliases();
  std::set<std::string> held;
  for (const TensorSource& source : sources.model) held.insert(source.name);
  std::erase_if(sources.aliases, [&](const auto& alias) { return !held.contains(alias.second); });
  leave_out_fixed_loss_scale(sources, config.precision);
  for (TensorSource& source : sources_of(carried)) sources.optimizer.push_back(std::move(source));
  return sources;
}

std::map<std::string, std::string> Training::Impl::vocabulary_hashes() const {
  std::map<std::string, std::string> hashes;
  for (const SavedVocabulary& v : data.vocabularies) hashes[v.file_name] = v.sha256;
  return hashes;
}

}  // namespace tandem
