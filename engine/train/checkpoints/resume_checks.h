// Checks of a checkpoint that a run resumes from, against configuration, data and log: none of its
// values changes the run without a message.
#pragma once

#include <cstdint>
#include <string>

#include "engine/config/run_config.h"
#include "engine/train/checkpoints/checkpoint.h"

namespace tandem {

/// Others would draw another part of the samples for evaluation, of which some were trained.
void refuse_other_split(const TrainingPosition& before, const TrainingPosition& now,
                        const RunConfig& config);

/// Throws where the data ends before the place where the run stopped, where it has fewer samples up
/// to there than were seen, or where that many epochs of it are more steps than can be counted.
void refuse_other_place(const TrainingPosition& before, std::int64_t samples,
                        std::int64_t steps_per_epoch, const std::string& checkpoint);

/// With buckets: throws where another batch size would put other samples into the rest of an epoch.
void refuse_other_buckets(const TrainingPosition& before, const RunConfig& config);

/// Throws where a rule of parameters.freeze has ended, or has not, against what the steps of the
/// run say.
void refuse_other_thaws(const TrainingPosition& before, const RunConfig& config,
                        const std::string& checkpoint);

/// Throws where best and patience are not those of the evaluations in metrics.jsonl; what it lacks
/// is believed.
void refuse_other_best(const TrainingPosition& before, const RunConfig& config,
                       const std::string& run_dir, const std::string& checkpoint);

/// Throws where more steps in a row were skipped than in the whole run.
void refuse_more_skipped(const TrainingPosition& before, std::int64_t skipped,
                         const std::string& checkpoint);

/// Records in `position` that the run continues with batches like `now`.
void go_on_with(const BatchStretch& now, TrainingPosition& position);

}  // namespace tandem
