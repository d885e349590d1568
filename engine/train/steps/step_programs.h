// The programs of a run's steps: made before the first one, and again where a phase of
// parameters.freeze begins.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/train/programs/run_programs.h"
#include "engine/train/steps/micro_batch_programs.h"
#include "engine/train/updates/missed_steps.h"

namespace tandem {

/// The data that steps read.
struct StepData {
  std::shared_ptr<const DataSource> source;
  std::shared_ptr<OpenEpochs> epochs;      // in which order; with lengths where there are buckets
  std::shared_ptr<const Buckets> buckets;  // null: all samples are of one length
};

/// The state of the rules of parameters.freeze so far.
struct FrozenSoFar {
  /// By rule with an end, "fc1 until 1.5 epochs": whether it had ended in the last step. It then
  /// never holds again, whatever becomes of the batch size.
  std::map<std::string, bool> thawed;
  std::int64_t taken_steps = 0;   // that no loss scale has skipped
  MissedStepCounts missed_steps;  // by parameter: how many of these it was frozen in
};

class StepPrograms {
 public:
  StepPrograms(const RunConfig& config, const RunParts& parts, StepData data,
               const RunLength& length, StateStore& states, std::shared_ptr<Arenas> arenas);

  /// From here on the run has this length.
  void set_length(const RunLength& length) { length_ = length; }
  /// How many samples of its epoch a resumed run has read: they decide the size of the epoch's last
  /// step.
  void set_samples_read(std::int64_t samples) { samples_read_ = samples; }
  /// Takes over what a run that is resumed had frozen.
  void restore(const FrozenSoFar& before, std::uint64_t steps_done);

  /// Per rule of parameters.freeze: whether it has ended after this number of steps.
  std::vector<bool> thawed_after(std::uint64_t steps_done) const;
  bool are_of(const std::vector<bool>& thawed) const { return thawed_ == thawed; }
  /// Makes the programs of the phase `thawed`, which begins after `taken` steps, not counting those
  /// that were skipped; false where they are there already.
  bool build_where_due(std::vector<bool> thawed, std::int64_t taken);

  BoundProgram& at(const MicroBatchShape& shape) { return programs_.at(shape); }
  /// The program of a whole step, or of its first micro-batch.
  const BoundProgram& main() const { return *main_; }
  /// Those of the micro-batches of a full step, in order; one may occur several times.
  std::vector<const BoundProgram*> of_full_step() const;
  /// The fields of the data that they are fed.
  const std::vector<int>& fields() const { return fields_; }
  /// Whether learning rates are those of the configuration.
  bool have_rates() const { return have_rates_; }
  /// Whether all of them can begin a step while the one before it is under way.
  bool may_overlap() const;

  const std::map<std::int64_t, std::shared_ptr<const DataSource>>& sources_by_length() const {
    return cut_;
  }
  /// The data for programs for a length; 0: there are no buckets.
  std::shared_ptr<const DataSource> source_of(std::int64_t length) const;

  /// Several ranks: throws where these do not have the same exchanges in the same order.
  void compare_ranks() const;
  /// Throws what the programs of later phases of parameters.freeze would throw once they are due:
  /// what is refused, and memory that they need together with the programs `others`. Returns what
  /// all programs of the run hold together, per device.
  std::vector<MemoryUse> check_later_phases(const std::vector<const BoundProgram*>& others) const;
  /// After `taken` steps, not counting those that were skipped.
  FrozenSoFar frozen_so_far(std::int64_t taken) const;

 private:
  void build();
  /// The programs of steps from here to the end of the run, but for other phases of freezing.
  std::vector<StepProgram> needed() const;
  /// What the parameters that train in the phase `thawed` have missed.
  MissedStepCounts missed_before(MissedSteps& missed, const StepProgram& first,
                                 const std::vector<bool>& thawed, std::int64_t taken) const;
  /// For the phase `thawed`, whose parameters have missed that many steps. Adds warnings about the
  /// graph in training, each once.
  TrainingGraph training_graph(const MicroBatchShape& shape, const std::vector<bool>& thawed,
                               const MissedStepCounts& missed,
                               std::vector<std::string>& warnings) const;
  Graph forward(const MicroBatchShape& shape, std::vector<std::string>& notes) const;
  RunParts parts_for(const StepProgram& program) const;

  const RunConfig& config_;
  const RunParts parts_;
  const StepData data_;
  RunLength length_;
  StateStore& states_;
  const std::shared_ptr<Arenas> arenas_;
  std::map<std::int64_t, std::shared_ptr<const DataSource>> cut_;  // by length of a bucket
  std::int64_t samples_read_ = 0;
  std::map<MicroBatchShape, BoundProgram> programs_;
  const BoundProgram* main_ = nullptr;
  std::vector<int> fields_;
  bool have_rates_ = false;
  std::vector<bool> thawed_;  // as the programs were built
  MissedSteps missed_;
  MissedStepCounts missed_steps_;  // for the parameters that train, as the programs were built
};

}  // namespace tandem
