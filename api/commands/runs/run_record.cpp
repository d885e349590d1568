#include "api/commands/runs/run_record.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/config/keys/changed_keys.h"
#include "engine/formats/files.h"
#include "engine/formats/json_file.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"
#include "engine/logs/metrics_file.h"
#include "engine/metrics/metric.h"
#include "engine/train/checkpoints/run_directory.h"

namespace tandem::api {
namespace {

/// The text of a file; "" where it does not exist.
std::string text_of(const std::string& path) {
  constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;
  return path_exists(path) ? read_file(path, most_bytes) : std::string();
}

std::int64_t changed_at(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::int64_t>(status.st_mtime) : 0;
}

bool is_being_trained(const std::string& path) {
  try {
    RunDirectory::lock(path);
    return false;
  } catch (const Error&) {
    return true;
  }
}

/// The last bytes of a file, at most `most`.
std::string end_of_file(const std::string& path, std::streamoff most) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  file.seekg(-std::min<std::streamoff>(most, file.tellg()), std::ios::end);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Whether the log of the last start ends with an error about numbers that are not finite.
bool log_says_diverged(const std::string& path) {
  const std::string text = end_of_file(path + "/train.log", 4096);
  const std::size_t start = text.rfind("resumed at step ");
  return text.find(" not finite", start == std::string::npos ? 0 : start) != std::string::npos;
}

std::optional<RunBest> best_of_summary(const std::string& path) {
  try {
    const JsonFile file(path + "/summary.json");
    const auto best = file.root().find("best");
    if (!best) return std::nullopt;
    const auto metric = best->find("metric"), value = best->find("value"),
               step = best->find("step");
    if (!metric || !value || !step) return std::nullopt;
    return RunBest{metric->as_text().value_or(""), value->as_number().value_or(std::nan("")),
                   step->as_natural().value_or(0)};
  } catch (const Error&) {  // it does not exist, or is no summary
    return std::nullopt;
  }
}

/// Collects the contents of the lines of metrics.jsonl.
class Lines {
 public:
  Lines(RunRecord& record, bool with_series) : record_(record), with_series_(with_series) {}

  void take(LoggedLine&& line) {
    record_.step = line.step;
    const bool is_evaluation = line.phase == "eval";
    for (const auto& [name, value] : line.values) {
      if (name == "wall") take_wall(value);
      if (name == "loss" && !is_evaluation) record_.loss = value;
      if (is_evaluation) take_best(name, value, line.step);
      if (with_series_ && name != "wall") add(name, is_evaluation, line.step, value);
    }
    if (!is_evaluation) return;
    std::erase_if(line.values, [](const auto& value) { return value.first == "wall"; });
    record_.evaluation = std::move(line.values);
    record_.tables = std::move(line.tables);
  }
  void end() {
    record_.seconds += wall_;
    record_.best = best_;
  }
  bool has_diverged() const {
    const auto is_bad = [](const auto& value) { return !std::isfinite(value.second); };
    return (record_.loss && !std::isfinite(*record_.loss)) ||
           std::any_of(record_.evaluation.begin(), record_.evaluation.end(), is_bad);
  }

 private:
  /// Each start of the run counts from 0.
  void take_wall(double wall) {
    if (!std::isfinite(wall)) return;
    if (wall < wall_) record_.seconds += wall_;
    wall_ = wall;
  }
  void take_best(const std::string& name, double value, std::uint64_t step) {
    const auto wanted = record_.settings.find("eval.best");
    if (wanted == record_.settings.end() || !std::isfinite(value)) return;
    if (wanted->second != "\"" + name + "\"") return;
    const bool larger = larger_is_better(name);
    if (best_ && (larger ? value <= best_->value : value >= best_->value)) return;
    best_ = RunBest{name, value, step};
  }
  /// By the type of metric that eval.metrics gives the name; an unknown name is taken as the type.
  bool larger_is_better(const std::string& name) const {
    std::string kind = name;
    for (const auto& [key, value] : record_.settings) {
      if (!key.starts_with("eval.metrics.") || value != "\"" + name + "\"") continue;
      const std::string item = key.substr(0, key.rfind('.'));
      const auto found = record_.settings.find(item + ".kind");
      if (found != record_.settings.end() && found->second.size() > 2)
        kind = found->second.substr(1, found->second.size() - 2);
    }
    const MetricKind* const known = find_metric(kind);
    return known != nullptr && known->better == Better::larger;
  }
  void add(const std::string& name, bool is_evaluation, std::uint64_t step, double value) {
    const auto [at, is_new] = places_.try_emplace({name, is_evaluation}, record_.series.size());
    if (is_new) record_.series.push_back({name, is_evaluation, {}, {}});
    RunSeries& series = record_.series[at->second];
    series.steps.push_back(static_cast<double>(step));
    series.values.push_back(value);
  }

  RunRecord& record_;
  bool with_series_;
  double wall_ = 0;
  std::optional<RunBest> best_;
  std::map<std::pair<std::string, bool>, std::size_t> places_;  // indices in record_.series
};

}  // namespace

const char* run_state_name(RunState state) {
  constexpr const char* names[] = {"running", "finished", "diverged", "stopped"};
  return names[static_cast<std::size_t>(state)];
}

const RunSeries* RunRecord::find(std::string_view series_name, bool is_evaluation) const {
  const auto found = std::find_if(series.begin(), series.end(), [&](const RunSeries& one) {
    return one.name == series_name && one.is_evaluation == is_evaluation;
  });
  return found == series.end() ? nullptr : &*found;
}

bool is_run(const std::string& path) {
  return is_directory(path) &&
         (path_exists(path + "/metrics.jsonl") || path_exists(path + "/train.resolved.toml"));
}

RunRecord read_run(const std::string& path, bool with_series) {
  RunRecord record;
  record.path = normal_path(path);
  while (record.path.size() > 1 && record.path.back() == '/') record.path.pop_back();
  record.name = std::filesystem::path(record.path).filename().string();
  if (!is_run(record.path)) {
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "this is no run directory",
                           .file = path,
                           .expected = "a folder with metrics.jsonl and train.resolved.toml",
                           .fix = "name a folder that `tandem train` has made; `tandem runs` lists "
                                  "them"});
  }
  record.settings = flat_settings(text_of(record.path + "/train.resolved.toml"));
  for (const char* key : {"model", "model.file"}) {
    const auto model = record.settings.find(key);
    if (model != record.settings.end() && model->second.size() > 2)
      record.model = model->second.substr(1, model->second.size() - 2);
  }
  // Asked first: what a process that has ended wrote before is all there.
  const bool is_running = is_being_trained(record.path);
  Lines lines(record, with_series);
  const std::string metrics = record.path + "/metrics.jsonl";
  record.bad_lines =
      read_metrics_file(metrics, [&](LoggedLine&& line) { lines.take(std::move(line)); });
  lines.end();
  record.changed = std::max(changed_at(metrics), changed_at(record.path + "/summary.json"));
  const bool is_finished = path_exists(record.path + "/summary.json");
  if (is_finished) {
    record.state = RunState::finished;
    if (auto best = best_of_summary(record.path)) record.best = std::move(best);
  } else if (is_running) {
    record.state = RunState::running;
  } else if (lines.has_diverged() || log_says_diverged(record.path)) {
    record.state = RunState::diverged;
  }
  return record;
}

}  // namespace tandem::api
