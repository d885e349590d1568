// Runs optimizer steps: the loader fills input slots ahead, programs run micro-batches, results are
// read, on accelerators when the next step is under way.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/train/steps/micro_batch_watch.h"
#include "engine/train/steps/step_programs.h"
#include "engine/train/updates/learning_rate_factors.h"

namespace tandem {

struct StepResult {
  std::uint64_t step = 0;   // from 1
  DataPosition start, end;  // place in the data before and after this step
  std::int64_t samples = 0;
  double loss = 0;
  std::vector<std::pair<std::string, double>> terms;
  std::optional<double> gradient_norm;
  std::vector<std::pair<std::string, double>> norms;  // for log.norms
  std::optional<double> loss_scale;                   // for the next step
  std::int64_t skipped_steps = 0;                     // in the whole run, by the loss scale
  std::optional<double> lr;  // unset where the model brings its own optimizer
  double signals = 0;        // the sum over all ranks
};

class StepRunner {
 public:
  StepRunner(const RunConfig& config, const RunParts& parts, StepData data, const RunLength& length,
             StateStore& states, std::shared_ptr<Arenas> arenas);
  ~StepRunner();

  /// Builds the programs of the step after `steps_done`, for a run that has this length from here
  /// on, in which rules of parameters.freeze were in the state `before` (others follow from the
  /// length); to be called before `start`.
  void prepare(std::uint64_t steps_done, const RunLength& length, const FrozenSoFar& before);
  /// Throws what the programs of later phases of parameters.freeze would throw once they are due:
  /// what is refused, and memory that they need together with the programs `others`. Returns what
  /// all programs of the run hold together, per device.
  std::vector<MemoryUse> check_later_phases(const std::vector<const BoundProgram*>& others) const;
  /// State after the last step.
  FrozenSoFar frozen_so_far() const;
  /// Several ranks: throws where their programs do not have the same exchanges in the same order.
  void compare_ranks() const;
  /// Starts the loader threads.
  void start(std::uint64_t steps_done, const DataPosition& position);
  /// Launches the next optimizer step: devices may still work when it returns. If there are several
  /// micro-batches, it waits for all but the last one. Throws Error{data} of the loader, and what
  /// `finish` throws for those micro-batches. `watch` may be null. `signals`: those of this rank,
  /// for all of them.
  void launch(MicroBatchWatch* watch = nullptr, float signals = 0);
  /// Waits for the oldest step that was launched. Throws Error{data} for its bad labels and
  /// indices, with the operator's path.
  StepResult finish();
  /// Steps that were launched and are not finished.
  int in_flight() const;
  /// Whether another step may be launched before those are finished: one step ahead, where an
  /// accelerator takes part, a step is one micro-batch, and the next one has the same programs.
  bool may_launch_ahead() const;
  /// False within a step that has changed states, such as running statistics in a first
  /// micro-batch. Where the loader threw in a step's first micro-batch they are those of the last
  /// step that was launched.
  bool states_are_whole() const;
  void stop();
  /// The schedules of the learning rates; evaluations may change them from the next launch on.
  Schedules& schedules();

  const BoundProgram& main_program() const;
  /// The programs of the micro-batches of a full step, in order; one may occur several times.
  std::vector<const BoundProgram*> step_programs() const;
  /// Seconds that launches have waited for the loader so far.
  double waited_for_data() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem
