// Starts a run in its directory, or continues the one that is there.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/train/loop/run_evaluation.h"
#include "engine/train/loop/step_check.h"

namespace tandem {

class RunStart {
 public:
  using Files = std::vector<std::pair<std::string, std::string>>;  // name, content

  RunStart(Run& run, RunLog& log, FiniteGuard& guard, RunEvaluation& evaluation, StepCheck& check,
           TrainingObserver& observer)
      : run_(run),
        log_(log),
        guard_(guard),
        evaluation_(evaluation),
        check_(check),
        observer_(observer) {}

  /// Makes the run directory, or continues in `resume_from`; returns the lock on it. `files` are
  /// written there.
  std::shared_ptr<const void> start(const std::string& resume_from, const Files& files,
                                    Saver& saver, Steps& steps);
  /// Throws what `start` would throw, and leaves nothing.
  void try_start(const std::string& resume_from, Saver& saver);
  /// Takes over the checkpoint at `path` of a run, which it does not change: everything but the
  /// place in the run. Adds lines to `messages`; returns the states that this precision does not
  /// have.
  std::vector<NamedTensor> take_over(CheckpointContent& content, const std::string& path,
                                     const std::string& run_dir,
                                     std::vector<std::string>& messages);

 private:
  void resume(const std::string& run_dir, Saver& saver, Steps& steps);
  /// The position of a run that continues after this checkpoint.
  void continue_after(const TrainingPosition& saved);
  /// Throws where the checkpoint at `path` was made with another model or other data than this run,
  /// and the run does not accept that. Returns what checkpoints record from here on.
  FingerprintPtr compared(const TrainingPosition& saved, const std::string& path,
                          std::vector<std::string>& messages) const;
  /// Writes the record of this start; says which keys have changed since the last one.
  void write_files(const Files& files);

  Run& run_;
  RunLog& log_;
  FiniteGuard& guard_;
  RunEvaluation& evaluation_;
  StepCheck& check_;
  TrainingObserver& observer_;
};

}  // namespace tandem
