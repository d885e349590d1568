// What a run directory contains, for commands that list, compare and plot runs: read leniently, as
// a run may still be running, cut short or copied in part.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/logs/metrics_log.h"

namespace tandem::api {

enum class RunState : std::uint8_t {
  running,   // a process trains in it
  finished,  // it has a summary.json
  diverged,  // it ended with numbers that are not finite
  stopped,   // anything else: interrupted, killed, failed
};
const char* run_state_name(RunState state);

/// Numbers of one name over the steps of a run.
struct RunSeries {
  std::string name;
  bool is_evaluation = false;
  std::vector<double> steps, values;  // values may be NaN or infinite
};

struct RunBest {
  std::string metric;
  double value = 0;
  std::uint64_t step = 0;
};

struct RunRecord {
  std::string path;  // the directory
  std::string name;  // the last part of the path
  RunState state = RunState::stopped;
  std::string model;  // the model's file, as train.resolved.toml has it; "" where that is missing
  std::map<std::string, std::string> settings;             // key by key, of train.resolved.toml
  std::uint64_t step = 0;                                  // the last one of metrics.jsonl
  std::optional<double> loss;                              // the loss at that step
  std::vector<std::pair<std::string, double>> evaluation;  // numbers of the last evaluation
  std::optional<RunBest> best;  // best evaluation by eval.best; none without that key
  double seconds = 0;           // time of training, summed over all starts
  std::int64_t changed = 0;     // time of the last write to the metrics, in seconds since 1970
  std::vector<RunSeries> series;
  std::vector<tandem::MetricTable> tables;  // tables of the last evaluation
  std::size_t bad_lines = 0;                // unreadable lines of metrics.jsonl, which are skipped

  const RunSeries* find(std::string_view series_name, bool is_evaluation) const;
};

/// Whether a folder looks like a run directory.
bool is_run(const std::string& path);

/// Throws Error{usage} where there is no run, Error{runtime} where a file cannot be read. Without
/// `with_series`, only what the other members need is kept.
RunRecord read_run(const std::string& path, bool with_series = true);

}  // namespace tandem::api
