#include "api/train/resumed_run.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "api/init/configuration.h"
#include "api/init/guessed_run.h"
#include "api/model/placing.h"
#include "api/policy/batch_size.h"
#include "api/train/given_objects.h"
#include "engine/config/keys/changed_keys.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/graph/text.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/checkpoints/run_directory.h"
#include "engine/train/start/ended_run.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;

constexpr const char* resolved_name = "train.resolved.toml";
constexpr const char* not_set = "not set";
constexpr std::uint64_t most_policy_bytes = std::uint64_t{16} << 20;

bool any_says(const std::vector<std::string>& overrides, const std::string& key) {
  return std::any_of(overrides.begin(), overrides.end(),
                     [&](const std::string& item) { return says(item, key); });
}

std::string value_of(const std::map<std::string, std::string>& settings, const std::string& key) {
  const auto found = settings.find(key);
  return found == settings.end() ? not_set : found->second;
}

/// "far" from "far=emulated:0,memory=2GiB".
std::string device_name(const std::string& binding) { return binding.substr(0, binding.find('=')); }

/// The bindings of both lists; the later one where a device has two.
std::vector<std::string> with_devices(std::vector<std::string> before,
                                      const std::vector<std::string>& now) {
  for (const std::string& binding : now) {
    std::erase_if(before, [&](const std::string& other) {
      return device_name(other) == device_name(binding);
    });
    before.push_back(binding);
  }
  return before;
}

std::vector<std::string> with_rules(std::vector<std::string> before,
                                    const std::vector<std::string>& now) {
  for (const std::string& rule : now) {
    if (std::find(before.begin(), before.end(), rule) == before.end()) before.push_back(rule);
  }
  return before;
}

/// Arguments that are recorded after the text of a run's policy, as "# --device gpu=emulated:0".
std::set<std::string> arguments_in(const std::string& policy) {
  std::set<std::string> found;
  std::istringstream lines(policy);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find_first_not_of("# ");
    const bool is_one =
        line.starts_with('#') && at != std::string::npos &&
        (line.compare(at, 7, "--place") == 0 || line.compare(at, 8, "--device") == 0);
    if (is_one) found.insert(line.substr(at));
  }
  return found;
}

/// "epochs = 3, steps = 40"
std::string length_text(const RunConfig& config) {
  std::string text;
  const auto settings = flat_settings(to_toml(config));
  for (const char* key : {"epochs", "steps", "max_time"}) {
    const auto found = settings.find(key);
    if (found != settings.end())
      text += (text.empty() ? "" : ", ") + std::string(key) + " = " + found->second;
  }
  return text;
}

std::string listed_arguments(const std::set<std::string>& all) {
  return all.empty() ? "none" : joined(std::vector<std::string>(all.begin(), all.end()), " ");
}

}  // namespace

std::string run_to_resume(const ConfigSource& source, const TrainOptions& options) {
  NamedRun named;
  if (source.is_guessed())
    named.name = run_name(source.path);
  else
    named = source.named(options.overrides);
  if (!options.run_dir.empty() || !named.run_dir.empty()) {
    const std::string run_dir =
        options.run_dir.empty() ? named.run_dir : normal_path(options.run_dir);
    if (is_directory(run_dir + "/checkpoints")) return run_dir;
    throw Error(
        ErrorKind::usage,
        Diagnostic{.message = path_exists(run_dir)
                                  ? "this is no run to resume: it has no checkpoints"
                                  : "there is no such run to resume",
                   .file = run_dir,
                   .fix = "leave --resume out, or name a run that is there with --run-dir"});
  }
  const std::string file = normal_path(source.path);
  const std::string found =
      RunDirectory::newest_unfinished((fs::path(file).parent_path() / "runs").string(), named.name);
  if (!found.empty()) return found;
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "there is no unfinished run to resume",
                         .file = file,
                         .fix = "leave --resume out, or name the run with --run-dir"});
}

StartRecord record_of_start(const ConfigSource& source, const TrainOptions& options, int ranks) {
  StartRecord record;
  record.config = normal_path(source.path);
  if (!source.is_guessed()) record.text = source.read();
  record.ranks = ranks;
  if (!options.overrides.empty()) record.commands.push_back({options.overrides, current_folder()});
  record.place = options.place;
  record.devices = options.devices;
  return record;
}

ResumedRun::ResumedRun(std::string run_dir, ConfigSource source, TrainOptions options)
    : run_dir_(std::move(run_dir)), source_(std::move(source)), options_(std::move(options)) {
  std::optional<StartRecord> recorded = read_start_record(run_dir_);
  if (recorded) {
    started_ = *std::move(recorded);
    moved_ = MovedPaths(started_, run_dir_);
  } else if (list_checkpoints(run_dir_ + "/checkpoints").empty()) {
    started_.config = normal_path(source_.path);  // it was killed before it wrote anything
    started_.ranks = 0;
  } else {
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "this run cannot be resumed: it lacks this file",
                           .file = run_dir_ + "/" + start_record_file,
                           .fix = "take a whole copy of the run directory, or train in a new run"});
  }
  started_.place = with_rules(std::move(started_.place), options_.place);
  started_.devices = with_devices(std::move(started_.devices), options_.devices);
}

std::vector<std::string> ResumedRun::all_keys(const std::vector<std::string>& last) const {
  std::vector<std::string> all;
  for (const GivenKeys& given : started_.commands) {
    for (const std::string& item : given.overrides) {
      constexpr std::string_view data = "data=";
      const bool is_relative = item.starts_with(data) && !item.substr(data.size()).starts_with('/');
      if (!is_relative) {
        all.push_back(item);
        continue;
      }
      const fs::path there = fs::path(given.folder) / item.substr(data.size());
      all.push_back(std::string(data) + moved_.now(there.lexically_normal().string()));
    }
  }
  all.insert(all.end(), last.begin(), last.end());
  return all;
}

std::string ResumedRun::config_file() const {
  const std::string resolved = run_dir_ + "/" + resolved_name;
  const bool goes_by_resolved = fs::path(started_.config).filename() == resolved_name;
  return goes_by_resolved && path_exists(resolved) ? resolved : source_.path;
}

RunConfig ResumedRun::config() const {
  if (goes_by_source()) return source_.resumed_config(started_, moved_, options_.overrides);
  return read_resumed_config(config_file(), started_, moved_, options_.overrides);
}

std::string ResumedRun::take_longer_length(RunConfig& config) {
  if (source_.is_guessed() || !goes_by_source()) return "";
  const std::optional<RunConfig> recorded = recorded_config(started_, moved_);
  const std::optional<EndedRun> ended = ended_run(run_dir_);
  if (!recorded || !ended) return "";
  RunConfig then = config;
  then.steps = recorded->steps;
  then.epochs = recorded->epochs;
  then.max_seconds = recorded->max_seconds;
  const bool is_asked =
      any_says(options_.overrides, "steps") || any_says(options_.overrides, "epochs");
  StartRecord without = without_lengths(started_);
  RunConfig longer;
  try {
    if (!has_reached_length(then, *ended)) return "";
    if (is_asked && !has_reached_length(config, *ended)) return "";
    longer = source_.resumed_config(without, moved_, options_.overrides);
    if (longer.batch_choice.is_open) longer = with_batch_size(std::move(longer), config.batch_size);
    if (has_reached_length(longer, *ended)) return "";
  } catch (const Error&) {  // train.toml by itself gives no length, or an invalid one
    return "";
  }
  started_ = std::move(without);
  goes_on_longer_ = true;
  config = std::move(longer);
  return fmt::format(
      "the run has reached the length that it was started with ({}): it continues to that of {} "
      "({})",
      length_text(then), is_asked ? "this command line" : source_.path, length_text(config));
}

void ResumedRun::add_changed_lengths(const RunConfig& config, std::vector<Diagnostic>& to) const {
  // A run that was killed at its start may have the new record, but still the old resolved file.
  const std::optional<RunConfig> recorded = recorded_config(started_, moved_);
  const std::string file = run_dir_ + "/" + resolved_name;
  if (!recorded && !path_exists(file)) return;
  const auto then = flat_settings(recorded ? to_toml(*recorded) : read_file(file));
  const auto now = flat_settings(to_toml(config));
  for (const std::string key : {"epochs", "steps", "max_time"}) {
    if (goes_on_longer_ && key != "max_time") continue;
    const std::string before = value_of(then, key), is = value_of(now, key);
    if (before == is || any_says(options_.overrides, key)) continue;
    Diagnostic d;
    d.message = "the run was started with another length";
    d.file = config.file;
    d.path = key;
    d.expected = before;
    d.got = is;
    if (before != not_set) d.fix = key + "=" + before + " on the command line keeps it";
    if (is != not_set)
      d.fix += (d.fix.empty() ? "" : ", ") + key + "=" + is + " there takes the new one";
    to.push_back(std::move(d));
  }
}

void ResumedRun::add_changed_placement(const RunConfig& config,
                                       const std::vector<std::string>& place,
                                       std::vector<Diagnostic>& to) const {
  const std::string file = run_dir_ + "/policy.toml";
  if (!path_exists(file)) return;
  const std::string before = read_file(file, most_policy_bytes);
  const RunPolicy policy = read_run_policy(
      config, {.place = place, .devices = devices(), .text = text_of(options_.policy)});
  if (policy.text == before) return;
  const std::string fix = "leave it out, or policy=" + file +
                          " keeps the rules of the start; --accept-changes takes the new ones";
  const auto add = [&](std::string message, std::string path, std::string expected,
                       std::string got) {
    Diagnostic d;
    d.message = std::move(message);
    d.file = config.policy.empty() ? config.file : config.policy;
    d.path = std::move(path);
    d.expected = std::move(expected);
    d.got = std::move(got);
    d.fix = fix;
    to.push_back(std::move(d));
  };
  const std::set<std::string> given_then = arguments_in(before),
                              given_now = arguments_in(policy.text);
  if (given_then != given_now)
    add("the run was started with other rules or devices on the command line", "",
        listed_arguments(given_then), listed_arguments(given_now));
  const auto then = flat_settings(before), now = flat_settings(policy.text);
  std::map<std::string, std::string> all = then;
  all.insert(now.begin(), now.end());
  for (const auto& [key, value] : all) {
    if (key.starts_with("model")) continue;  // such keys only serve checks of the policy by itself
    const std::string was = value_of(then, key), is = value_of(now, key);
    if (was != is) add("the run was started under another policy", key, was, is);
  }
}

std::vector<Diagnostic> ResumedRun::changes(const RunConfig& config,
                                            const std::vector<std::string>& place) const {
  std::vector<Diagnostic> found;
  add_changed_placement(config, place, found);
  add_changed_lengths(config, found);
  return found;
}

void ResumedRun::add_hidden_edits(std::vector<std::string>& to) const {
  if (started_.text.empty() || !goes_by_source()) return;
  const auto then = flat_settings(started_.text), now = flat_settings(source_.read());
  for (const auto& [key, value] : now) {
    if (value_of(then, key) == value || any_says(options_.overrides, key)) continue;
    for (const GivenKeys& given : started_.commands) {
      for (const std::string& item : given.overrides) {
        if (!says(item, key)) continue;
        to.push_back(
            fmt::format("{} has {} = {} now, and the run continues with {}, which it was started "
                        "with: {}={} on the command line changes that",
                        source_.path, key, value, item, key, value));
      }
    }
  }
}

std::vector<std::string> ResumedRun::compared(const RunConfig& config,
                                              const std::vector<std::string>& place,
                                              int ranks) const {
  std::vector<std::string> lines;
  if (const std::string moved = moved_.text(); !moved.empty()) lines.push_back(moved);
  std::vector<std::string> given = all_keys({});
  std::erase_if(given, [&](const std::string& item) {  // this command line gives it again
    return any_says(options_.overrides, item.substr(0, item.find('=')));
  });
  for (const std::string& rule : started_.place) given.push_back("--place '" + rule + "'");
  for (const std::string& device : started_.devices) given.push_back("--device " + device);
  if (!given.empty())
    lines.push_back("the run continues with what it was started with: " + joined(given, " "));
  if (started_.ranks > 0 && started_.ranks != ranks)
    lines.push_back(fmt::format("the run was started by {} processes and continues with {}",
                                started_.ranks, ranks));
  add_hidden_edits(lines);
  std::vector<Diagnostic> found = changes(config, place);
  if (found.empty()) return lines;
  if (!options_.accept_changes) {
    std::string& fix = found.back().fix;
    fix += std::string(fix.empty() ? "" : "; ") +
           "--accept-changes accepts all of these changes and continues";
    throw Error(ErrorKind::usage, std::move(found));
  }
  for (const Diagnostic& d : found)
    lines.push_back("accepted: " + d.message + (d.path.empty() ? "" : ": " + d.path) + ": " +
                    d.expected + ", now " + d.got);
  return lines;
}

StartRecord ResumedRun::record(int ranks) const {
  StartRecord now = started_;
  now.ranks = ranks;
  if (goes_by_source() &&
      fs::path(source_.path).filename() != resolved_name) {  // the present train.toml
    now.config = normal_path(source_.path);
    if (!source_.is_guessed()) now.text = source_.read();
  }
  const GivenKeys given{options_.overrides, current_folder()};
  const bool is_known = !now.commands.empty() && now.commands.back().overrides == given.overrides &&
                        now.commands.back().folder == given.folder;
  if (!given.overrides.empty() && !is_known) now.commands.push_back(given);
  return now;
}

}  // namespace tandem::api
