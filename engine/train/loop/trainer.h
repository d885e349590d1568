// Trains a model: the interface of the training loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/structures/function_ref.h"
#include "engine/metrics/metric_table.h"
#include "engine/train/loop/training_observer.h"
#include "engine/train/steps/micro_batch_programs.h"

namespace tandem {

class TrainingLoop;  // engine/train/loop/training_loop.h

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
  Training(RunConfig config, RunParts parts, DataSets data,
           std::shared_ptr<TrainingObserver> observer = nullptr);
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
  void run_steps(std::int64_t count, FunctionRef<void(double seconds)> after,
                 StepPace pace = StepPace::ahead, MicroBatchWatch* watch = nullptr);
  /// Runs up to `count` optimizer steps, one by one, without logging or checkpoints: `goes_on` gets
  /// each one's loss, which may be no number, and its learning rate, where the optimizer is the
  /// configuration's; false ends them.
  void walk(std::int64_t count, FunctionRef<bool(double loss, std::optional<double> lr)> goes_on);

 private:
  std::unique_ptr<TrainingLoop> loop_;
};

}  // namespace tandem
