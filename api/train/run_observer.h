// Passes the reports of a training to the options of `train`, keeps the record of its start.
#pragma once

#include <cstdint>
#include <string>

#include "api/train/operator_log.h"
#include "engine/config/resume/start_record.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/train/loop/training_observer.h"
#include "tandem/tandem.h"

namespace tandem::api {

class RunObserver final : public TrainingObserver {
 public:
  /// The arguments have to outlive it; `log` may be null.
  RunObserver(const TrainOptions& options, StartRecord& record, OperatorLog* log)
      : options_(options), record_(record), log_(log) {}

  void progress(const TrainingProgress& p) override {
    const auto& of_kind = p.evaluation ? options_.on_evaluation : options_.on_step;
    if (!options_.on_progress && !of_kind) return;
    Progress progress;
    progress.step = p.step;
    progress.steps = p.steps;
    progress.epoch = p.epoch;
    progress.epochs = p.epochs;
    progress.evaluation = p.evaluation;
    progress.values = p.values;
    progress.samples_per_second = p.samples_per_second;
    progress.seconds = p.seconds;
    progress.norms = p.norms;
    progress.seconds_left = p.seconds_left;
    progress.data_wait = p.data_wait;
    if (of_kind) of_kind(progress);
    if (options_.on_progress) options_.on_progress(progress);
  }
  void message(const std::string& text) override {
    if (options_.on_message) options_.on_message(text);
  }
  void chose_run_dir(const std::string& path) override {
    if (options_.on_run_dir) options_.on_run_dir(path);
  }
  void started(const std::string& run_dir) override {
    record_.run_dir = normal_path(run_dir);
    replace_file(run_dir + "/" + start_record_file, to_json(record_));
  }
  void saved(const std::string& path, std::uint64_t step) override {
    if (options_.on_checkpoint) options_.on_checkpoint(path, step);
  }
  bool is_asked_to_stop() override { return options_.stop.stop_requested(); }
  MicroBatchWatch* watch() override { return log_; }

 private:
  const TrainOptions& options_;
  StartRecord& record_;
  OperatorLog* log_;
};

}  // namespace tandem::api
