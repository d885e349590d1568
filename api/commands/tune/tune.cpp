// tandem::api::tune: random search and successive halving, where each trial is a run of its own.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <new>

#include <fmt/format.h>

#include "api/commands/tune/rounds.h"
#include "api/commands/tune/trials.h"
#include "api/init/guessed_run.h"
#include "api/program/terminal.h"
#include "api/program/tune.h"
#include "engine/config/run_config.h"
#include "engine/formats/count_text.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/formats/sha256.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_trials = 10000;
// Number of trials whose configuration is checked before the first starts.
constexpr std::size_t most_checked = 500;
constexpr int least_halving = 2, most_halving = 16;

void tune_problem(std::vector<Diagnostic>& problems, const char* option, std::string message,
                  std::string expected, std::string got, std::string fix = "") {
  problems.push_back({.message = std::move(message),
                      .file = option,
                      .expected = std::move(expected),
                      .got = std::move(got),
                      .fix = std::move(fix)});
}

void check_numbers_of(const TuneOptions& options) {
  std::vector<Diagnostic> problems;
  if (options.trials < 1 || options.trials > most_trials)
    tune_problem(problems, "--trials", "out of range", fmt::format("1 to {}", most_trials),
                 std::to_string(options.trials));
  if (options.halving != 0 && (options.halving < least_halving || options.halving > most_halving))
    tune_problem(problems, "--halving", "out of range",
                 fmt::format("{} to {}", least_halving, most_halving),
                 std::to_string(options.halving));
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

/// Reads the configuration with each set of settings; throws all errors, each once.
void check_settings(const std::string& file, const std::vector<std::string>& overrides,
                    const std::vector<TrialSettings>& all) {
  std::vector<Diagnostic> problems;
  std::vector<std::string> told;
  for (const TrialSettings& settings : all) {
    std::vector<std::string> with = overrides;
    for (std::string& text : overrides_of(settings)) with.push_back(std::move(text));
    try {
      read_run_config(file, with);
    } catch (const Error& error) {
      for (const Diagnostic& d : error.diagnostics()) {
        const std::string text = to_string(d);
        if (std::find(told.begin(), told.end(), text) != told.end()) continue;
        told.push_back(text);
        problems.push_back(d);
      }
      if (problems.size() > 20) break;
    }
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

bool holds_data_out(const RunConfig& config) {
  return config.data && (!config.data->eval.files.empty() || config.data->eval_fraction > 0);
}

/// The metric for comparing trials, from the options or the configuration.
std::string metric_of_search(const RunConfig& config, const TuneOptions& options) {
  if (options.metric.empty())
    return holds_data_out(config) && !config.eval.best.empty() ? config.eval.best : "loss";
  std::vector<Diagnostic> problems;
  const std::string& name = options.metric;
  const MetricConfig* const found = config.eval.find(name);
  if (name != "loss" && found == nullptr)
    tune_problem(problems, "--metric", "not one of the metrics",
                 joined(config.eval.metrics, ", ", &MetricConfig::name), name,
                 "add it: eval.metrics = [ …, \"" + name + "\" ]");
  else if (found != nullptr && !is_one_number(*found))
    tune_problem(problems, "--metric", "this metric is more than one number",
                 "a metric that is one number", name);
  else if (found != nullptr && found->kind->better == Better::neither)
    tune_problem(problems, "--metric", "this metric is best near 1, not at an end",
                 "a metric that is better the larger or the smaller it is", name);
  else if (name != "loss" && !holds_data_out(config))
    tune_problem(problems, "--metric", "there is no data to evaluate on", "loss", name,
                 "data.eval.fraction = 0.1 holds a tenth of the samples out");
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  return name;
}

void check_halving(const RunConfig& config, const TuneOptions& options, const SearchSpace& space) {
  if (options.halving == 0) return;
  std::vector<Diagnostic> problems;
  if (!config.steps && !config.epochs)
    tune_problem(problems, "--halving", "a run that only has max_time cannot be divided into parts",
                 "epochs or steps", "");
  for (const SearchedKey& key : space.keys()) {
    if (key.key == "steps" || key.key == "epochs")
      tune_problem(problems, "--over", "--halving sets the length of trials itself", "another key",
                   key.key);
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

class Tuning {
 public:
  Tuning(const std::string& config_path, const TuneOptions& options)
      : options_(options), space_(options.over), file_(config_path) {
    check_numbers_of(options);
    if (is_guessed(config_path)) {
      throw Error(ErrorKind::usage, Diagnostic{.message = "a search needs a train.toml",
                                               .file = config_path,
                                               .fix = "`tandem init` writes one for a model"});
    }
    check_settings(file_, options.overrides, space_.ends());
    const std::vector<TrialSettings> settings = space_.trials(options.seed, options.trials);
    check_settings(file_, options.overrides,
                   {settings.begin(), settings.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                             settings.size(), most_checked))});
    for (const TrialSettings& one : settings)
      trials_.push_back({.number = static_cast<int>(trials_.size()) + 1, .settings = one});
    config_ = read_run_config(file_, options.overrides);
    check_halving(config_, options, space_);
    const std::string text = to_toml(config_);
    search_ = {.config = config_.file,
               .config_sha256 = sha256(text.data(), text.size()),
               .over = options.over,
               .seed = options.seed,
               .halving = options.halving,
               .metric = metric_of_search(config_, options)};
    search_.better = better_of(config_.eval.metrics, search_.metric);
    folder_ = options.to.empty()
                  ? (fs::path(config_.file).parent_path() / "runs" / config_.name).string()
                  : normal_path(options.to);
    read_trials(folder_, search_, trials_);
  }

  TuneReport run() {
    make_directories(folder_);
    write();
    const std::vector<double> parts =
        rounds_of(static_cast<std::int64_t>(trials_.size()), options_.halving);
    for (std::size_t round = 0; round < parts.size() && !stops(); ++round) {
      for (Trial* trial : contenders(round, parts.size())) {
        if (stops()) break;
        if (trial->values.size() > round || trial->status == TrialStatus::failed) continue;
        run(*trial, parts[round], round + 1 == parts.size());
        write();
      }
    }
    return report();
  }

 private:
  bool stops() const { return options_.stop.stop_requested(); }
  void say(const std::string& text) const {
    if (options_.on_message) options_.on_message(text);
  }
  void write() const { write_trials(folder_, search_, trials_, command()); }

  /// All trials in the first round; later the best ones of the round before.
  std::vector<Trial*> contenders(std::size_t round, std::size_t rounds) {
    std::vector<Trial*> result;
    std::size_t places = trials_.size();
    for (std::size_t i = 0; i < round; ++i) places /= static_cast<std::size_t>(options_.halving);
    if (round == 0 || rounds == 1) {
      for (Trial& trial : trials_) result.push_back(&trial);
      return result;
    }
    std::vector<Trial> before = trials_;
    for (Trial& trial : before) {  // restores the state at the end of that round
      if (trial.values.size() < round) trial.status = TrialStatus::failed;
      trial.values.resize(std::min(trial.values.size(), round));
    }
    for (const Trial* trial : ranked(before, search_.better)) {
      const bool has_value = trial->status != TrialStatus::failed && std::isfinite(trial->value());
      if (result.size() < places && has_value)
        result.push_back(&trials_[static_cast<std::size_t>(trial->number - 1)]);
    }
    return result;
  }

  void run(Trial& trial, double part, bool is_last) {
    const auto start = std::chrono::steady_clock::now();
    say(fmt::format("trial {}/{}  {}", trial.number, trials_.size(),
                    joined(overrides_of(trial.settings), "  ")));
    try {
      const TrainResult result = trained(trial, part);
      trial.steps = result.steps;
      trial.status = result.interrupted ? TrialStatus::interrupted
                     : is_last          ? TrialStatus::finished
                                        : TrialStatus::stopped;
      if (!result.interrupted) {
        trial.evaluation = result.evaluation;
        trial.values.push_back(value_of(result));
        say(fmt::format("trial {}/{}  {} {:.6g} after {}", trial.number, trials_.size(),
                        search_.metric, trial.value(), count_text(trial.steps, "step")));
      }
    } catch (const Error& error) {
      if (stops())
        trial.status = TrialStatus::interrupted;
      else
        fail(trial, error.what());
    } catch (const std::bad_alloc&) {
      fail(trial, "out of memory");
    }
    trial.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  void fail(Trial& trial, const std::string& why) const {
    trial.status = TrialStatus::failed;
    trial.error = why;
    say(fmt::format("trial {}/{}  failed: {}", trial.number, trials_.size(), why));
  }

  TrainResult trained(const Trial& trial, double part) const {
    TrainOptions options;
    options.overrides = options_.overrides;
    for (std::string& text : overrides_of(trial.settings))
      options.overrides.push_back(std::move(text));
    for (std::string& text : length_of_part(config_, part))
      options.overrides.push_back(std::move(text));
    options.place = options_.place;
    options.devices = options_.devices;
    options.run_dir = folder_ + "/" + trial.folder_name();
    options.stop = options_.stop;
    options.on_message = options_.on_message;
    const std::string checkpoints = options.run_dir + "/checkpoints";
    options.resume = is_directory(checkpoints) && !list_directory(checkpoints).empty();
    // A trial that was killed before its first checkpoint starts again.
    if (!options.resume && path_exists(options.run_dir)) remove_all(options.run_dir);
    return Trainer(file_, options).run();
  }

  double value_of(const TrainResult& result) const {
    const auto found = result.evaluation.find(search_.metric);
    if (found != result.evaluation.end()) return found->second;
    return search_.metric == "loss" ? result.loss : std::numeric_limits<double>::quiet_NaN();
  }

  std::string command() const {
    const Trial& best = *ranked(trials_, search_.better).front();
    if (best.status == TrialStatus::failed || !std::isfinite(best.value())) return "";
    std::string text = "tandem train " + for_shell(file_);
    for (const std::string& item : options_.overrides) text += " " + for_shell(item);
    for (const std::string& item : overrides_of(best.settings)) text += " " + for_shell(item);
    for (const std::string& item : options_.place) text += " --place " + for_shell(item);
    for (const std::string& item : options_.devices) text += " --device " + for_shell(item);
    return text;
  }

  TuneReport report() const {
    TuneReport report;
    report.folder = folder_;
    report.command = command();
    for (const Trial& trial : trials_) {
      report.finished += trial.values.empty() ? 0 : 1;
      report.failed += trial.status == TrialStatus::failed ? 1 : 0;
    }
    report.interrupted = stops();
    report.text = trials_text(search_, trials_) + "\n" + folder_ +
                  "/tune.json, tune.csv and tune.svg have all of it";
    if (!report.command.empty()) report.text += "\n" + report.command;
    report.json = trials_json(search_, trials_, report.command);
    if (report.failed > 0)
      report.warnings.push_back(
          fmt::format("{} of {} trials failed", report.failed, trials_.size()));
    return report;
  }

  const TuneOptions& options_;
  const SearchSpace space_;
  const std::string file_;
  RunConfig config_;
  Search search_;
  std::string folder_;
  std::vector<Trial> trials_;
};

}  // namespace

TuneReport tune(const std::string& config_path, const TuneOptions& options) {
  return Tuning(config_path, options).run();
}

}  // namespace tandem::api
