#include "engine/train/loop/trainer.h"

#include <chrono>
#include <utility>

#include "engine/train/group/end_on_ranks.h"
#include "engine/train/loop/training_loop.h"

namespace tandem {

Training::Training(RunConfig config, RunParts parts, DataSets data,
                   std::shared_ptr<TrainingObserver> observer)
    : loop_(std::make_unique<TrainingLoop>(std::move(config), std::move(parts), std::move(data),
                                           std::move(observer))) {}

Training::~Training() = default;
const BoundProgram& Training::main_program() const { return loop_->run.runner->main_program(); }
std::vector<const BoundProgram*> Training::step_programs() const {
  return loop_->run.runner->step_programs();
}
const std::vector<MemoryUse>& Training::memory() const { return loop_->memory; }
StateStore& Training::states() { return loop_->run.states; }
std::int64_t Training::total_steps() const {
  const RunLength& length = loop_->run.length;
  return length.is_limited() ? length.steps : 0;
}
std::int64_t Training::steps_per_epoch() const { return loop_->run.length.steps_per_epoch; }

TrainingResult Training::run(const std::string& resume_from,
                             const std::vector<std::pair<std::string, std::string>>& files) {
  TrainingLoop& my = *loop_;
  try {
    const std::shared_ptr<const void> lock = my.start.start(resume_from, files, my.saver, my.steps);
    return my.train();
  } catch (const ErrorElsewhere&) {
    throw;
  } catch (const Error& error) {
    const Error reported = my.with_newest_checkpoint(error);
    my.log.log_error(reported);
    end_on_ranks(my.run.ranks(), reported);
  }
}

void Training::try_start(const std::string& resume_from) {
  loop_->start.try_start(resume_from, loop_->saver);
}

void Training::walk(std::int64_t count,
                    FunctionRef<bool(double loss, std::optional<double> lr)> goes_on) {
  loop_->walk(count, goes_on);
}

void Training::run_steps(std::int64_t count, FunctionRef<void(double)> after, StepPace pace,
                         MicroBatchWatch* watch) {
  using Clock = std::chrono::steady_clock;
  Run& run = loop_->run;
  StepRunner& runner = *run.runner;
  runner.start(run.position.step, run.position.data);
  Clock::time_point start = Clock::now();
  for (std::int64_t i = 0; i < count; ++i) {
    runner.launch(watch);
    const bool ahead =
        pace == StepPace::ahead && watch == nullptr && i + 1 < count && runner.may_launch_ahead();
    while (runner.in_flight() > (ahead ? 1 : 0)) {
      const StepResult result = runner.finish();
      after(seconds_since(start));
      start = Clock::now();
      run.position.step = result.step;
      run.position.data = result.end;
    }
  }
  runner.stop();
}

}  // namespace tandem
