// What a training reports to its caller, with what it asks.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/train/steps/micro_batch_watch.h"

namespace tandem {

struct TrainingProgress {
  std::uint64_t step = 0, steps = 0;
  double epoch = 0, epochs = 0;
  bool evaluation = false;
  std::vector<std::pair<std::string, double>> values;
  std::vector<std::pair<std::string, double>> norms;  // for log.norms
  double samples_per_second = 0, seconds = 0;
  double seconds_left = -1;  // at the pace of this process so far; negative: not known
  double data_wait = 0;  // part of the time since the line before in which steps waited for data
};

/// Does nothing by itself. Only rank 0 gets reports.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;

  virtual void progress(const TrainingProgress& /*progress*/) {}
  virtual void message(const std::string& /*text*/) {}
  /// The run directory, once it is there.
  virtual void chose_run_dir(const std::string& /*path*/) {}
  /// The run has begun or resumed in its directory: for files to be kept there.
  virtual void started(const std::string& /*run_dir*/) {}
  /// A checkpoint of this step is complete, at this path.
  virtual void saved(const std::string& /*path*/, std::uint64_t /*step*/) {}
  /// Asked after each step and in evaluations, on every rank.
  virtual bool is_asked_to_stop() { return false; }
  /// Watches steps; its reports go into the log. Null: nothing does.
  virtual MicroBatchWatch* watch() { return nullptr; }
};

}  // namespace tandem
