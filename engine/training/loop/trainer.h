// Trains a model: the interface of the training loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/metrics/metric_table.h"
#include "engine/training/micro_batch_programs.h"
#include "engine/training/micro_batch_watch.h"

namespace tandem {

class TrainingLoop;  // engine/training/loop/training_loop.h

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

struct TrainingHooks {
  std::function<void(const TrainingProgress&)> on_progress;
  std::function<void(const std::string&)> on_message;
  std::function<void(const std::string&)> on_run_dir;  // on rank 0, once it is there
  /// On rank 0, with the directory, once the run has begun or resumed in it: for files to be kept.
  std::function<void(const std::string&)> on_start;
  std::function<bool()> stop_requested;  // asked after each step and in evaluations
  MicroBatchWatch* watch = nullptr;      // its reports go into the log
  /// Whether `watch` watches a step, asked in order of steps; unset: it watches those that are
  /// logged. The others are launched one step ahead.
  std::function<bool(std::uint64_t step, bool is_logged)> is_watched;
};

struct TrainingResult {
  std::string run_dir;
  std::uint64_t steps = 0;
  /// Loss of the last step; NaN where no step was left to do and the log does not have it.
  double loss = 0;
  std::vector<std::pair<std::string, double>> evaluation;
  std::vector<MetricTable> tables;  // metrics of it that are more than one number
  /// The best checkpoint; "": there is none.
  std::string best_metric = {};
  double best_value = 0;
  std::uint64_t best_step = 0;
  bool interrupted = false;
};

/// Whether the next step may be launched before the one before is finished, as in `run`, or each
/// step is waited for: its spans in a trace are then together.
enum class StepPace : std::uint8_t { ahead, one_by_one };

class Training {
 public:
  /// Builds all programs and initialises the parameters. Throws Error with everything that is
  /// wrong.
  Training(RunConfig config, RunParts parts, DataSets data, TrainingHooks hooks);
  ~Training();

  /// Runs from the start, or from the newest whole checkpoint of `resume_from` (a run directory).
  /// Files other than metrics and checkpoints (name, content) are written at the start.
  TrainingResult run(const std::string& resume_from,
                     const std::vector<std::pair<std::string, std::string>>& files);

  /// Does what `run` does before its first step, without leaving anything: throws what it would
  /// throw.
  void try_start(const std::string& resume_from);

  /// The program of a whole step (or of its first micro-batch), for inspection and benches.
  const BoundProgram& main_program() const;
  /// The programs of the micro-batches of a full step, in order; one may occur several times.
  std::vector<const BoundProgram*> step_programs() const;
  /// Per device: what all programs of the run hold together, those of evaluations and of later
  /// phases of parameters.freeze too.
  const std::vector<MemoryUse>& memory() const;
  StateStore& states();
  std::int64_t total_steps() const;  // 0: until max_time
  std::int64_t steps_per_epoch() const;
  /// Runs `count` optimizer steps without logging or checkpoints, calling `after` with each one's
  /// seconds, from the end of the one before; for benches. `watch` may be null; with it each step
  /// is waited for.
  void run_steps(std::int64_t count, const std::function<void(double seconds)>& after,
                 StepPace pace = StepPace::ahead, MicroBatchWatch* watch = nullptr);
  /// Runs up to `count` optimizer steps, one by one, without logging or checkpoints: `goes_on` gets
  /// each one's loss, which may be no number, and its learning rate, where the optimizer is the
  /// configuration's; false ends them.
  void walk(std::int64_t count,
            const std::function<bool(double loss, std::optional<double> lr)>& goes_on);

 private:
  std::unique_ptr<TrainingLoop> loop_;
};

}  // namespace tandem
