// Saves a run: its checkpoints, which of them are kept.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/train/loop/best_evaluation.h"
#include "engine/train/loop/finite_guard.h"

namespace tandem {

class Saver {
 public:
  Saver(Run& run, RunLog& log, FiniteGuard& guard, BestEvaluation& best)
      : run_(run), log_(log), guard_(guard), best_(best) {}

  /// The run continues after its checkpoint of this step. `is_behind`: it lacks an evaluation of
  /// the step. `carried`: its states that this precision does not have, which new ones keep.
  void resume(bool is_behind, std::vector<NamedTensor> carried);
  /// Says where the disk has no room for the checkpoints in this folder.
  void warn_of_room(const std::string& folder);

  BestEvaluation& best() { return best_; }
  /// Writes a checkpoint of this step, unless it is saved with its evaluation. `keep_all`: whatever
  /// checkpoint.keep says. Throws where states are not finite.
  void save(bool finished, bool keep_all = false);
  /// This step was evaluated after its checkpoint, if it has one.
  void note_evaluation() { is_behind_ = is_saved(); }
  /// Whether there is a checkpoint of this step.
  bool is_saved() const { return step_ == run_.position.step && run_.position.step > 0; }
  /// Whether the checkpoint of the last saved step lacks an evaluation of it.
  bool is_behind() const { return is_behind_; }

 private:
  CheckpointSources sources() const;

  Run& run_;
  RunLog& log_;
  FiniteGuard& guard_;
  BestEvaluation& best_;
  std::vector<NamedTensor> carried_;
  std::uint64_t step_ = 0;  // the last one that is saved
  bool is_behind_ = false;
};

}  // namespace tandem
