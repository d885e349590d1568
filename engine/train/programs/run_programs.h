// Which programs a run consists of, as a value: steps, evaluations and memory plans build these.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/train/programs/freeze_rules.h"
#include "engine/train/steps/micro_batch_programs.h"

namespace tandem {

/// The counts that decide which programs are needed, besides the configuration.
struct RunCounts {
  std::int64_t samples = 0;       // in an epoch; 0: not known, steps are full ones
  std::int64_t samples_read = 0;  // read before in the epoch of a resumed run
  std::int64_t eval_samples = 0;  // total over all ranks; 0: no evaluation
  Shape lengths = {};             // the buckets' lengths, ascending; empty: no buckets
  RankPlace place = {};
};

/// A program of training steps.
struct StepProgram {
  MicroBatchShape shape;
  std::int64_t times = 0;         // in a full step; 0: steps of other sizes or lengths run it
  bool takes_rows_ahead = false;  // rows that the next step looks up may be fetched in this one

  /// Whether a full step of the longest samples runs it.
  bool is_of_full_step() const { return times > 0; }
};

/// An evaluation, of which each rank runs its part.
struct EvaluationPrograms {
  std::int64_t micro_batch = 1;     // samples
  std::vector<std::int64_t> sizes;  // micro-batch sizes, one program each
  /// How often each rank runs a program where ranks exchange rows or products in it; 0: each runs
  /// its own micro-batches and no others.
  std::int64_t rounds = 0;
};

/// The programs of steps, the full step's first; with buckets the longest ones before others, so
/// that these share their memory.
std::vector<StepProgram> step_programs(const RunConfig& config, const RunCounts& counts);

/// Whether ranks exchange parts of parameters where they run the model.
bool shares_parameters(const Shardings& shards);

/// What a rank evaluates of that many samples: about as many as the others, or whole batches where
/// the loss compares the samples of a batch.
SampleShare evaluated_share(const RunConfig& config, std::int64_t samples, const RankPlace& place);

/// The programs of an evaluation. `exchanges`: ranks shard parameters.
EvaluationPrograms evaluation_programs(const RunConfig& config, const RunCounts& counts,
                                       bool exchanges);

/// All programs of a run: each phase has all programs of steps, and the evaluation stays from the
/// first to the last.
struct RunPrograms {
  std::vector<StepProgram> steps;
  EvaluationPrograms evaluation;
  std::vector<FreezePhase> phases;
};
RunPrograms programs_of(const RunConfig& config, const RunCounts& counts, const RunLength& length,
                        bool exchanges);

}  // namespace tandem
