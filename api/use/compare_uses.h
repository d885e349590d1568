// What ranks that use a trained model together have in common.
#pragma once

#include "api/use/trained_run.h"
#include "engine/ranks/rank_group.h"

namespace tandem::api {

/// Throws where ranks use other models, settings or samples than rank 0. `samples`: how many there
/// are; negative where that is not known yet.
void compare_uses(const RankGroup& group, const TrainedModel& trained, std::int64_t samples);

}  // namespace tandem::api
