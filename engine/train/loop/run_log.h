// The messages of a run, the lines of its steps, its evaluations.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/train/group/rank_times.h"
#include "engine/train/loop/histogram_log.h"
#include "engine/train/loop/run.h"
#include "engine/train/loop/training_observer.h"

namespace tandem {

/// Only rank 0 writes; others may call everything.
class RunLog {
 public:
  using Values = std::vector<std::pair<std::string, double>>;

  RunLog(const Run& run, TrainingObserver& observer) : run_(run), observer_(observer) {}

  /// A message for the user, which the log has, too.
  void say(const std::string& text);
  /// A line for the log only, where the caller shows it in another way.
  void note(const std::string& text);
  /// Reports to the observer that the checkpoint of this step is complete.
  void report_saved(const std::string& path) const;
  /// The error that ends the run.
  void log_error(const Error& error);
  /// Writes what was said before there was a directory.
  void write_notes();

  /// Chooses the parameters of log.histograms, once there are programs. Throws Error{usage}.
  void choose_histograms() { histograms_ = HistogramLog(run_); }
  /// Opens the formats of log.also in the run directory.
  void open_formats();
  void log_histograms() const { histograms_.log(run_); }

  /// Rates count from here.
  void begin();
  void log_step(const StepResult& result, const std::optional<SlowestRank>& slowest);
  /// `seconds`: how long the evaluation took. `is_new`: metrics.jsonl lacks it.
  void log_evaluation(const Values& values, const std::vector<MetricTable>& tables, double seconds,
                      bool is_new);

 private:
  /// The part of a report that every line has.
  TrainingProgress progress_now() const;
  /// Until the last step, or until max_time; negative: not known.
  double seconds_left() const;
  void report(const TrainingProgress& progress) const;
  void add_slowest(const SlowestRank& slowest, Values& values);

  /// The place of the last line.
  struct Line {
    std::chrono::steady_clock::time_point at;
    std::uint64_t samples = 0;
    double waited = 0;  // seconds that steps have waited for data
  };

  const Run& run_;
  TrainingObserver& observer_;
  std::vector<std::string> notes_;  // before there is a directory
  Line line_;
  HistogramLog histograms_;
  int last_reported_slowest_ = -1;  // a rank
};

}  // namespace tandem
